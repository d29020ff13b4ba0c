// Made of host-plugins/src/link.ts and opencode.ts: change that, and run npm run build there.
/**
 * Connects a plugin to nacre: asks the daemon on the home's socket, or runs nacre-hook, within a time limit.
 * Never throws into the host, and imports only Node's modules.
 */
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readFileSync, realpathSync, statSync } from "node:fs";
import { request } from "node:http";
import { homedir, platform } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
const LONGEST_PATH = 100;
const MOST_ANSWER = 4_000_000;
const MOST_CHARACTERS = 9_900;
/** nacre-hook's own limit is lower by default. */
const USUAL_MS = 150;
/** The part of a turn's time limit reserved for nacre-hook's start and output. */
const SPARED_MS = 100;
/** Maximum wait for the daemon at a session's start, before nacre-hook is used. */
const MOST_PATIENCE_MS = 1_000;
/** Pause after a daemon did not answer in time. */
const REST_MS = 30_000;
/** The same problem is reported once in this time. */
const QUIET_MS = 60_000;
/** Return the configuration in a plugin's folder, with defaults. */
function readPlace(moduleUrl, environ = process.env) {
    const told = firstJson(dirname(fileURLToPath(moduleUrl)));
    const home = text(told.home) || environ.NACRE_HOME || join(homedir(), ".nacre");
    const hookMs = Number(environ.NACRE_HOOK_MS ?? 0);
    const patience = typeof told.patience_ms === "number" ? told.patience_ms : hookMs > USUAL_MS ? hookMs : undefined;
    return {
        home: resolve(home.startsWith("~") ? join(homedir(), home.slice(1)) : home),
        nacre: words(told.nacre, "nacre"),
        hook: words(told.hook, "nacre-hook"),
        env: isObject(told.env) ? told.env : {},
        version: text(told.version),
        isolates: told.isolates === true,
        ...(patience === undefined ? {} : { patience }),
    };
}
/** Return the path of a home's socket. */
function socketPath(home) {
    let real = home;
    try {
        real = realpathSync(home);
    }
    catch {
        // without a home there is no daemon
    }
    const inside = join(real, "daemon.sock");
    if (Buffer.byteLength(inside) <= LONGEST_PATH)
        return inside;
    const base = platform() === "darwin" ? "/private/tmp" : "/tmp";
    const name = createHash("sha256").update(inside).digest("hex").slice(0, 16);
    return join(base, `nacre-${process.getuid ? process.getuid() : "user"}`, `${name}.sock`);
}
/** Connects one host to nacre. */
class Link {
    place;
    host;
    restsUntil = 0;
    told = new Map();
    constructor(place, host) {
        this.place = place;
        this.host = host;
    }
    /** Return the context for the agent within the time limit; empty if there is none in time. */
    async context(event, call, ms, alone = true) {
        const began = Date.now();
        try {
            const { how, context } = await this.first(event, call, ms, alone);
            const told = context.length <= MOST_CHARACTERS ? context : "";
            this.host.debug?.(`nacre: ${event}: ${how}, ${Date.now() - began} ms, ${told.length} characters`);
            return told;
        }
        catch (error) {
            this.trouble(`${event}: ${messageOf(error)}`);
            return "";
        }
    }
    /** Let nacre-hook record an event and process it, without waiting. */
    note(event, call) {
        try {
            const child = this.spawnHook(event, ["pipe", "ignore", "ignore"], true);
            child.on("error", (error) => this.trouble(`nacre-hook: ${messageOf(error)}`));
            child.stdin?.on("error", () => { });
            child.stdin?.end(JSON.stringify(given(call)));
            child.unref();
        }
        catch (error) {
            this.trouble(`${event}: ${messageOf(error)}`);
        }
    }
    /** Log a problem on the host, at most once a minute. */
    trouble(message) {
        const now = Date.now();
        if (now - (this.told.get(message) ?? -QUIET_MS) < QUIET_MS)
            return;
        if (this.told.size > 100)
            this.told.clear();
        this.told.set(message, now);
        try {
            this.host.log(`nacre: ${message}`);
        }
        catch {
            // a host without a log
        }
    }
    /** Return the answer of the daemon, or of nacre-hook. */
    async first(event, call, ms, alone) {
        const until = Date.now() + ms;
        if (Date.now() >= this.restsUntil) {
            const patience = alone && event === "session-start" ? Math.min(ms * 0.5, MOST_PATIENCE_MS) : ms;
            try {
                return { how: "daemon", context: await this.ask(event, call, patience) };
            }
            catch (error) {
                if (error instanceof Late)
                    this.restsUntil = Date.now() + REST_MS;
            }
        }
        const left = until - Date.now();
        const context = alone && left > 0 ? await this.runHook(event, call, left) : undefined;
        if (context !== undefined)
            return { how: "alone", context };
        const isLate = Date.now() >= until;
        if (isLate)
            this.trouble(`${event}: no answer within ${ms} ms`);
        return { how: isLate ? "late" : "failed", context: "" };
    }
    /** Return the daemon's answer to a hook. Rejects if there is none in time. */
    ask(event, call, ms) {
        const path = socketPath(this.place.home);
        return new Promise((settle, reject) => {
            if (!isOwn(path))
                return reject(new Error("no daemon"));
            const to = { socketPath: path, method: "POST", path: `/hook/${this.host.name}/${event}`, agent: false };
            const asked = request(to, (response) => {
                const parts = [];
                let size = 0;
                response.on("data", (data) => {
                    parts.push(data);
                    size += data.length;
                    if (size > MOST_ANSWER)
                        asked.destroy(new Error("the daemon says too much"));
                });
                response.on("error", reject);
                response.on("end", () => {
                    clearTimeout(deadline);
                    if (response.statusCode === 200)
                        settle(Buffer.concat(parts).toString("utf8").trim());
                    else
                        reject(new Error(`the daemon answered ${response.statusCode}`));
                });
            });
            const deadline = setTimeout(() => {
                reject(new Late()); // Bun may not report a destroyed request
                asked.destroy();
            }, ms);
            asked.on("error", (error) => {
                clearTimeout(deadline);
                reject(error);
            });
            asked.end(JSON.stringify(given(call)));
        });
    }
    /** Return nacre-hook's output within the time limit; empty if it fails. */
    runHook(event, call, ms) {
        return new Promise((settle) => {
            const child = this.spawnHook(event, ["pipe", "pipe", "ignore"], false, ms > USUAL_MS ? ["--within", `${ms - SPARED_MS}`] : []);
            const deadline = setTimeout(() => {
                child.kill("SIGKILL");
                settle(undefined);
            }, ms);
            const parts = [];
            let size = 0;
            child.on("error", (error) => {
                this.trouble(`nacre-hook: ${messageOf(error)}`);
                clearTimeout(deadline);
                settle(undefined);
            });
            child.stdin?.on("error", () => { });
            child.stdout?.on("data", (data) => {
                parts.push(data);
                size += data.length;
                if (size > MOST_ANSWER)
                    child.kill("SIGKILL");
            });
            child.on("close", (code) => {
                clearTimeout(deadline);
                settle(code === 0 ? contextOf(Buffer.concat(parts).toString("utf8")) : undefined);
            });
            child.stdin?.end(JSON.stringify(given(call)));
        });
    }
    spawnHook(event, stdio, detached, options = []) {
        const [command, ...first] = this.place.hook;
        const words = [...first, "--home", this.place.home, ...options, this.host.name, event];
        const environ = { ...process.env, ...this.place.env };
        return spawn(command, words, { stdio, detached, env: environ, windowsHide: true });
    }
}
class Late extends Error {
}
/** The input of nacre-hook, in the format of most hosts. */
function given(call) {
    return {
        session_id: call.session,
        cwd: call.folder,
        prompt: call.prompt,
        source: call.occasion,
        transcript_path: call.transcript,
        reason: call.reason,
        budget_tokens: call.budget,
        signals: call.signals,
    };
}
/** Parse nacre-hook's output: the context, or JSON that contains it. */
function contextOf(output) {
    if (!output.trimStart().startsWith("{"))
        return output.trim();
    try {
        const told = JSON.parse(output);
        const inner = isObject(told) && isObject(told.hookSpecificOutput) ? told.hookSpecificOutput : {};
        return text(inner.additionalContext);
    }
    catch {
        return "";
    }
}
/** Return true if a socket's folder belongs only to the user. Sockets in other folders may be fake. */
function isOwn(path) {
    try {
        const seen = statSync(dirname(path));
        return !process.getuid || (seen.uid === process.getuid() && (seen.mode & 0o022) === 0);
    }
    catch {
        return false;
    }
}
function firstJson(folder) {
    for (const path of [join(folder, "nacre.json"), join(folder, "..", "nacre.json")]) {
        try {
            const told = JSON.parse(readFileSync(path, "utf8"));
            if (isObject(told))
                return told;
        }
        catch {
            // missing or unreadable: use the defaults
        }
    }
    return {};
}
function isObject(value) {
    return typeof value === "object" && value !== null && !Array.isArray(value);
}
/** Return a value if it is text. */
function text(value) {
    return typeof value === "string" ? value : "";
}
function messageOf(error) {
    return error instanceof Error ? error.message : String(error);
}
function words(value, usual) {
    const found = Array.isArray(value) ? value.filter((one) => typeof one === "string") : [text(value)];
    return found[0] ? found : [usual];
}
/** Return a path if it exists. */
function there(...parts) {
    const path = join(...parts);
    return existsSync(path) ? path : "";
}
function userFolder(...parts) {
    return join(homedir(), ...parts);
}
function wait(ms) {
    return new Promise((settle) => setTimeout(() => settle(undefined), ms));
}
/** nacre's plugin for OpenCode: context as parts of the person's message, and events at the end of sessions. */
const START_MS = 1_500;
const PROMPT_MS = 150;
const LOOK_UP_MS = 100;
const MOST_SESSIONS = 1_000;
const CHARACTERS = 6_000;
export const NacrePlugin = async ({ directory, client }) => {
    if (process.env.NACRE_OWN_CALL)
        return {};
    const log = (message) => process.env.NACRE_DEBUG && console.error(message);
    const place = readPlace(import.meta.url);
    const link = new Link(place, { name: "opencode", tool: "opencode", log });
    const sessions = new Map();
    const remember = (id, session) => {
        sessions.delete(id);
        sessions.set(id, session);
        if (sessions.size > MOST_SESSIONS)
            sessions.delete(sessions.keys().next().value);
        return session;
    };
    /** A session from before this process: resumed, unless it is a sub-agent's. */
    const lookUp = async (id) => {
        const asked = Promise.resolve(client?.session?.get?.({ path: { id } })).catch(() => undefined);
        const told = await Promise.race([asked, wait(LOOK_UP_MS)]);
        const info = isObject(told) && isObject(told.data) ? told.data : {};
        return sessions.get(id) ?? remember(id, { isApart: Boolean(info.parentID), occasion: "resume", isOpen: true });
    };
    const callOf = (id) => {
        const transcript = there(process.env.XDG_DATA_HOME || userFolder(".local", "share"), "opencode", "opencode.db");
        return { session: id, ...(directory ? { folder: directory } : {}), ...(transcript ? { transcript } : {}) };
    };
    const note = (event, id, reason = "") => {
        const session = sessions.get(id);
        if (!session || session.isApart || !session.isOpen)
            return;
        if (event === "session-end")
            session.isOpen = false;
        link.note(event, { ...callOf(id), reason });
    };
    const happened = {
        "session.created": (id, { info }) => {
            const isApart = isObject(info) && Boolean(info.parentID);
            remember(id, { isApart, occasion: "startup", isOpen: false });
        },
        "session.compacted": (id) => {
            const session = sessions.get(id);
            if (session)
                session.occasion = "compact";
        },
        "session.idle": (id) => note("turn-end", id),
        "session.deleted": (id) => {
            note("session-end", id, "deleted");
            sessions.delete(id);
        },
    };
    /** Catch all errors, so that OpenCode continues. */
    const guarded = async (work) => {
        try {
            await work();
        }
        catch (error) {
            link.trouble(messageOf(error));
        }
    };
    return {
        event: ({ event }) => guarded(() => {
            const properties = event.properties ?? {};
            const info = isObject(properties.info) ? properties.info : {};
            const id = text(properties.sessionID) || text(info.id);
            if (id)
                happened[event.type]?.(id, properties);
        }),
        "chat.message": (input, output) => guarded(async () => {
            const id = input.sessionID;
            const session = sessions.get(id) ?? (await lookUp(id));
            if (session.isApart)
                return;
            session.isOpen = true;
            const said = output.parts.filter((part) => part.type === "text" && !part.synthetic).map((part) => part.text ?? "");
            const call = { ...callOf(id), prompt: unquoted(said.join("\n")).slice(0, CHARACTERS) };
            const { occasion } = session;
            session.occasion = undefined;
            const context = occasion
                ? await link.context("session-start", { ...call, occasion }, Math.max(place.patience ?? 0, START_MS))
                : await link.context("prompt", call, place.patience ?? PROMPT_MS);
            if (!context)
                return;
            const last = output.parts.at(-1)?.id ?? "prt_";
            output.parts.push({ id: `${last}nacre`, sessionID: id, messageID: output.message.id, type: "text", text: context, synthetic: true });
        }),
        "experimental.session.compacting": ({ sessionID }) => guarded(() => note("pre-compact", sessionID)),
        dispose: () => guarded(() => {
            for (const id of [...sessions.keys()])
                note("session-end", id, "exit");
        }),
    };
};
/** Remove the quotes that `opencode run` puts around prompts with spaces. */
function unquoted(said) {
    return /^"(?:[^"\\]|\\.)* (?:[^"\\]|\\.)*"$/s.test(said) ? said.slice(1, -1).replaceAll('\\"', '"') : said;
}
