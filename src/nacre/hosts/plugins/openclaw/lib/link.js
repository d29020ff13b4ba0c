// Made of plugins/src/link.ts: change that, and run npm run build there.
/**
 * The thin way from a plugin to nacre: ask the daemon on the home's socket, else have nacre-hook look, in bounded time.
 * Nothing here throws into the host, and nothing is imported but Node's own modules.
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
/** nacre-hook bounds itself to less than this, unless it is told otherwise. */
const USUAL_MS = 150;
/** The end of what a turn waits that nacre-hook leaves to its start and to its output. */
const SPARED_MS = 100;
/** The longest that the daemon is waited for as a session starts; then nacre-hook looks. */
const MOST_PATIENCE_MS = 1_000;
/** So long a daemon that did not answer in time is left alone. */
const REST_MS = 30_000;
/** The same trouble is told once in this time. */
const QUIET_MS = 60_000;
/** What a plugin's own folder says of nacre, with what is usual where it says nothing. */
export function readPlace(moduleUrl, environ = process.env) {
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
/** Where the daemon of a home listens. */
export function socketPath(home) {
    let real = home;
    try {
        real = realpathSync(home);
    }
    catch {
        // a home that is not there has no daemon
    }
    const inside = join(real, "daemon.sock");
    if (Buffer.byteLength(inside) <= LONGEST_PATH)
        return inside;
    const base = platform() === "darwin" ? "/private/tmp" : "/tmp";
    const name = createHash("sha256").update(inside).digest("hex").slice(0, 16);
    return join(base, `nacre-${process.getuid ? process.getuid() : "user"}`, `${name}.sock`);
}
/** Talks to nacre for one host. */
export class Link {
    place;
    host;
    restsUntil = 0;
    told = new Map();
    constructor(place, host) {
        this.place = place;
        this.host = host;
    }
    /** What the agent is to be told, within so many milliseconds; empty where there is nothing, or nothing in time. */
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
    /** Something is over: nacre-hook notes what is to be done, and has it done. Nobody waits for it. */
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
    /** Tell the host's log what went wrong; the same thing once a minute. */
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
    /** The daemon's answer, else that of nacre-hook. */
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
    /** The daemon's answer to a hook. Rejects where there is none in time. */
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
                reject(new Late()); // Bun may tell nothing of a request that is destroyed
                asked.destroy();
            }, ms);
            asked.on("error", (error) => {
                clearTimeout(deadline);
                reject(error);
            });
            asked.end(JSON.stringify(given(call)));
        });
    }
    /** What nacre-hook tells in so many milliseconds; nothing where it fails. */
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
/** What nacre-hook reads: the shape that most hosts share. */
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
/** What nacre-hook writes: the context itself, or JSON that holds it. */
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
/** Whether the folder of a socket is the user's alone: who listens where others can put things is told nothing. */
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
            // not there, or not to be read: what is usual holds
        }
    }
    return {};
}
export function isObject(value) {
    return typeof value === "object" && value !== null && !Array.isArray(value);
}
/** A value where it is text, else nothing. */
export function text(value) {
    return typeof value === "string" ? value : "";
}
export function messageOf(error) {
    return error instanceof Error ? error.message : String(error);
}
function words(value, usual) {
    const found = Array.isArray(value) ? value.filter((one) => typeof one === "string") : [text(value)];
    return found[0] ? found : [usual];
}
/** A path, where something is there; else nothing. */
export function there(...parts) {
    const path = join(...parts);
    return existsSync(path) ? path : "";
}
export function userFolder(...parts) {
    return join(homedir(), ...parts);
}
export function wait(ms) {
    return new Promise((settle) => setTimeout(() => settle(undefined), ms));
}
