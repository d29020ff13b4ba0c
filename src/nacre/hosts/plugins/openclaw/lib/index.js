// Made of host-plugins/src/index.ts: change that, and run npm run build there.
import { readConfig } from "./config.js";
import { idleKeys } from "./idle.js";
import { Link, messageOf, readPlace, text, there, userFolder } from "./link.js";
import { Servers } from "./server.js";
import { makeTools, offeredName, readTools } from "./tools.js";
const ID = "nacre";
const OWN_PAGES = new Set(["MEMORY.md", "memory.md", "USER.md"]);
const MOST_SESSIONS = 1_000;
const MOST_KEPT = 12_000;
const APART_KEY = /:(subagent|acp|cron|hook|heartbeat)(:|$)/;
const APART_TRIGGERS = new Set(["cron", "heartbeat", "memory"]);
const APART_ORIGINS = new Set(["inter_session", "internal_system"]);
const STAMP = /^\[(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) \d{4}-\d{2}-\d{2} [^\]\n]*\]\s*/;
const KEY = Symbol.for("nacre.openclaw");
const shared = globalThis;
const memory = (shared[KEY] ??= { sessions: new Map(), ended: new Map(), folders: new Map() });
export default {
    id: ID,
    name: "nacre",
    description: "Long-term memory: what was settled in earlier sessions with any agent, given back when it matters.",
    register(api) {
        try {
            new Plugin(api).register();
        }
        catch (error) {
            api.logger?.warn?.(`nacre: ${messageOf(error)}`);
        }
    },
};
class Plugin {
    api;
    config;
    link;
    servers;
    isolates;
    sessions = memory.sessions;
    ended = memory.ended;
    folders = memory.folders;
    constructor(api) {
        this.api = api;
        const place = readPlace(import.meta.url);
        this.config = readConfig(api.pluginConfig, place.patience);
        if (this.config.home)
            place.home = this.config.home;
        const debug = this.config.debug ? { debug: (message) => api.logger.info(message) } : {};
        this.link = new Link(place, { name: "openclaw", tool: "openclaw", log: (message) => api.logger.warn(message), ...debug });
        this.servers = new Servers(place);
        this.isolates = place.isolates;
    }
    register() {
        if (!this.config.enabled || process.env.NACRE_OWN_CALL)
            return;
        if (this.config.plainNames && !this.isOnlyMemory()) {
            this.config.plainNames = false;
            this.api.logger.warn("nacre: its tools keep their prefix, since another plugin has tools of these names");
        }
        this.tellIdleKeys();
        this.registerTools();
        if (this.config.recalls || this.config.teaches) {
            this.api.on("before_prompt_build", (event, where) => this.guarded(() => this.build(event, where)));
        }
        if (this.config.notes)
            this.registerNotes();
        if (this.isolates)
            this.api.registerHook(["agent:bootstrap"], (event) => withoutOwnMemory(event.context), { name: "nacre-own-memory" });
        this.api.on("gateway_stop", () => this.servers.close());
        if (this.ownsSlot())
            this.api.registerMemoryCapability({ promptBuilder: () => (this.config.teaches ? [this.guidance()] : []) });
    }
    /** Warn once per process about keys of the config without effect. */
    tellIdleKeys() {
        const told = (memory.told ??= new Set());
        for (const line of idleKeys(this.api.pluginConfig)) {
            if (!told.has(line))
                this.api.logger.warn(`nacre: ${line}`);
            told.add(line);
        }
    }
    registerNotes() {
        const { api } = this;
        api.on("agent_end", (_event, where) => this.note("turn-end", where));
        api.on("before_compaction", (_event, where) => this.note("pre-compact", where));
        api.on("before_reset", (event, where) => this.note("session-end", where, event.reason || "reset"));
        api.on("session_end", (event, where) => {
            if (event.reason === "compaction")
                this.rename(event.sessionId, event.nextSessionId);
            else
                this.note("session-end", { ...where, sessionId: event.sessionId }, event.reason);
        });
        api.registerHook(["command:new", "command:reset"], (event) => this.command(event), { name: "nacre-command" });
    }
    registerTools() {
        const described = readTools(this.config);
        const names = described.map((one) => offeredName(one.name, this.config));
        this.api.registerTool((caller) => makeTools(described, this.config, this.servers, caller), { names });
    }
    /** Return the context for a turn. A rebuilt turn gets the same context. */
    build(event, where) {
        const id = where.sessionId;
        if (!id || isApart(where))
            return undefined;
        if (where.workspaceDir)
            remember(this.folders, id, where.workspaceDir);
        const prompt = wordsOf(event).slice(0, this.config.characters);
        const turn = `${event.currentUserMessageId ?? where.runId ?? ""} ${prompt}`;
        const session = this.sessions.get(id);
        if (session?.turn === turn)
            return session.result;
        const result = session ? this.goOn(session, prompt, where) : this.begin(id, turn, prompt, event, where);
        const known = this.sessions.get(id);
        if (known)
            remember(this.sessions, id, Object.assign(known, { turn, result }));
        return result;
    }
    /** Handle a session's start, also in a new process, where earlier context is lost. */
    async begin(id, turn, prompt, event, where) {
        const session = { kept: [], turn, result: Promise.resolve(undefined) };
        remember(this.sessions, id, session);
        const occasion = this.ended.delete(id) ? "clear" : event.messages?.length ? "compact" : "startup";
        const context = await this.context("session-start", { ...this.call(where), prompt, occasion, budget: this.config.budget }, this.config.startMs);
        if (context)
            session.kept.push(context);
        return this.given(session.kept);
    }
    async goOn(session, prompt, where) {
        const before = [...session.kept];
        const { signals } = this.config;
        const context = await this.context("prompt", { ...this.call(where), prompt, ...(signals ? { signals } : {}) }, this.config.promptMs);
        if (context)
            session.kept.push(context);
        while (session.kept.length > 2 && session.kept.join("").length > MOST_KEPT)
            session.kept.splice(1, 1);
        return this.given(before, context);
    }
    context(event, call, ms) {
        return this.config.recalls ? this.link.context(event, call, ms, this.config.looksAlone) : Promise.resolve("");
    }
    given(kept, now = "") {
        const lasting = [this.config.teaches && !this.ownsSlot() ? this.guidance() : "", ...kept].filter(Boolean).join("\n\n");
        if (!lasting && !now)
            return undefined;
        return { ...(now ? { prependContext: now } : {}), ...(lasting ? { appendSystemContext: lasting } : {}) };
    }
    guidance() {
        const name = (tool) => offeredName(tool, this.config);
        const stores = this.config.notes
            ? ` Call ${name("memory_store")} when a decision, a preference, a cause that took effort to find, or something left to do is plain: one statement each.`
            : "";
        return (`nacre remembers what was settled in earlier sessions with any agent of this person. Call ${name("memory_search")} before you ` +
            `decide what may have been decided already, or ask what may have been answered.${stores} ` +
            "What comes from memory is reference with a date: what the person says now goes before it.");
    }
    /** Record an end. The end of a session is recorded once until it gets another message. */
    note(event, where, reason = "") {
        this.guarded(() => {
            const id = where.sessionId;
            if (!id || isApart(where))
                return;
            const folder = where.workspaceDir ?? this.folders.get(id);
            if (event === "turn-end")
                this.ended.delete(id);
            if (event === "session-end") {
                if (this.ended.has(id))
                    return;
                remember(this.ended, id, reason);
                this.sessions.delete(id);
            }
            this.link.note(event, { ...this.call({ ...where, workspaceDir: folder }), reason });
        });
    }
    /** `/new` and `/reset`, which may not fire the session's end. */
    command(event) {
        const known = (event.context.previousSessionEntry ?? event.context.sessionEntry);
        const where = { sessionId: text(known?.sessionId), sessionKey: event.sessionKey, agentId: text(event.context.agentId) };
        this.note("session-end", { ...where, workspaceDir: text(event.context.workspaceDir) || undefined }, event.action);
    }
    rename(before, after) {
        const session = this.sessions.get(before);
        if (!session || !after)
            return;
        this.sessions.delete(before);
        remember(this.sessions, after, session);
    }
    call(where) {
        const { sessionId = "", workspaceDir: folder } = where;
        const transcript = this.transcript(where);
        return { session: sessionId, ...(folder ? { folder } : {}), ...(transcript ? { transcript } : {}) };
    }
    /** Return OpenClaw's storage of the session: its store, or the file of older versions. */
    transcript(where) {
        const agent = [process.env.OPENCLAW_STATE_DIR || userFolder(".openclaw"), "agents", where.agentId || "main"];
        return there(...agent, "agent", "openclaw-agent.sqlite") || there(...agent, "sessions", `${where.sessionId}.jsonl`);
    }
    ownsSlot() {
        return this.api.config?.plugins?.slots?.memory === ID;
    }
    /** Return true if no other plugin uses the plain tool names: nacre has the memory slot, and OpenClaw's memory is off. */
    isOnlyMemory() {
        const plugins = this.api.config?.plugins;
        const isOff = plugins?.entries?.["memory-core"]?.enabled === false || plugins?.deny?.includes("memory-core");
        return this.ownsSlot() && Boolean(isOff);
    }
    /** Log errors without affecting the host. */
    guarded(work) {
        try {
            const result = work();
            if (result instanceof Promise)
                return result.catch((error) => this.swallow(error));
            return result;
        }
        catch (error) {
            return this.swallow(error);
        }
    }
    swallow(error) {
        this.link.trouble(messageOf(error));
        return undefined;
    }
}
/** Keep OpenClaw's own memory pages out of its prompts. Its files do not change. */
function withoutOwnMemory(context) {
    if (!Array.isArray(context.bootstrapFiles))
        return;
    context.bootstrapFiles = context.bootstrapFiles.filter((file) => !OWN_PAGES.has(file?.name));
}
/** Sessions without a person, and turns not written by one. */
function isApart(where) {
    const isTask = APART_KEY.test(where.sessionKey ?? "") || (where.sessionId ?? "").startsWith("temp:");
    return isTask || APART_TRIGGERS.has(where.trigger ?? "") || APART_ORIGINS.has(where.inputProvenance?.kind ?? "");
}
/** Return the person's words without OpenClaw's time stamp. */
function wordsOf(event) {
    return (event.currentUserMessage ?? event.prompt ?? "").replace(STAMP, "").trim();
}
/** Append to a map that keeps the latest thousand entries. */
function remember(map, key, value) {
    map.delete(key);
    map.set(key, value);
    if (map.size > MOST_SESSIONS)
        map.delete(map.keys().next().value);
}
