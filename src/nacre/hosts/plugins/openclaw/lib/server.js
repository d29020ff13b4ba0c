// Made of host-plugins/src/server.ts: change that, and run npm run build there.
/** nacre's tools for a host whose plugins can add tools: `nacre mcp`, started by the first call. */
import { spawn } from "node:child_process";
import { isObject, messageOf, text } from "./link.js";
const REVISION = "2025-11-25";
const IDLE_MS = 600_000;
const CALL_MS = 45_000;
const LONG_MS = 600_000;
const LONG = new Set(["memory_extract", "memory_admin"]);
const MOST_SERVERS = 4;
/** One server for each working folder, because the folder determines the project. */
export class Servers {
    place;
    running = new Map();
    constructor(place) {
        this.place = place;
    }
    /** Return a tool's answer. Rejects if nacre does not run. */
    async call(tool, given, folder, signal) {
        const server = this.server(folder);
        const isLong = LONG.has(tool) || (isObject(given) && given.deep === true);
        const answer = await server.request("tools/call", { name: tool, arguments: given }, isLong ? LONG_MS : CALL_MS, signal);
        const content = isObject(answer) && Array.isArray(answer.content) ? answer.content : [];
        const texts = content.map((one) => (isObject(one) ? text(one.text) : "")).filter(Boolean);
        return { text: texts.join("\n\n"), failed: isObject(answer) && answer.isError === true };
    }
    close() {
        for (const server of this.running.values())
            server.end("closed");
        this.running.clear();
    }
    server(folder) {
        const known = this.running.get(folder);
        if (known && !known.isOver)
            return known;
        this.running.delete(folder);
        if (this.running.size >= MOST_SERVERS) {
            const [oldest, server] = this.running.entries().next().value;
            server.end("another folder");
            this.running.delete(oldest);
        }
        const server = new Server(this.place, folder);
        this.running.set(folder, server);
        return server;
    }
}
/** A process of `nacre mcp`. It ends after ten minutes without calls, and with the host. */
class Server {
    isOver = false;
    child;
    waiting = new Map();
    ready;
    idle;
    number = 0;
    rest = "";
    constructor(place, folder) {
        const [command, ...first] = place.nacre;
        const words = [...first, "mcp", "--tools", "all"];
        const environ = { ...process.env, ...place.env, NACRE_HOME: place.home };
        this.child = spawn(command, words, { cwd: folder, env: environ, stdio: ["pipe", "pipe", "ignore"], windowsHide: true });
        this.child.on("error", (error) => this.end(messageOf(error)));
        this.child.on("exit", (code) => this.end(`nacre mcp ended (${code})`));
        this.child.stdin?.on("error", () => { });
        this.child.stdout?.setEncoding("utf8").on("data", (data) => this.read(data));
        for (const one of [this.child, this.child.stdin, this.child.stdout])
            one?.unref?.();
        const about = { name: "nacre-plugin", version: place.version || "0" };
        this.ready = this.send("initialize", { protocolVersion: REVISION, capabilities: {}, clientInfo: about }, CALL_MS).then(() => this.write({ jsonrpc: "2.0", method: "notifications/initialized" }));
        this.ready.catch(() => { });
    }
    async request(method, params, ms, signal) {
        clearTimeout(this.idle);
        await this.ready;
        try {
            return await this.send(method, params, ms, signal);
        }
        finally {
            clearTimeout(this.idle);
            this.idle = setTimeout(() => this.waiting.size || this.end("idle"), IDLE_MS);
            this.idle.unref();
        }
    }
    end(why) {
        this.isOver = true;
        clearTimeout(this.idle);
        for (const one of this.waiting.values()) {
            clearTimeout(one.timer);
            one.reject(new Error(why));
        }
        this.waiting.clear();
        this.child.stdin?.end();
        this.child.kill();
    }
    send(method, params, ms, signal) {
        if (this.isOver)
            return Promise.reject(new Error("nacre mcp does not run"));
        const id = ++this.number;
        return new Promise((settle, reject) => {
            const give = (error) => {
                clearTimeout(timer);
                if (!this.waiting.delete(id))
                    return;
                this.write({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: id } });
                reject(error);
            };
            const timer = setTimeout(() => give(new Error(`no answer within ${ms / 1000} s`)), ms);
            signal?.addEventListener("abort", () => give(new Error("cancelled")), { once: true });
            this.waiting.set(id, { settle, reject, timer });
            this.write({ jsonrpc: "2.0", id, method, params });
        });
    }
    write(message) {
        if (!this.isOver)
            this.child.stdin?.write(`${JSON.stringify(message)}\n`);
    }
    read(data) {
        const lines = (this.rest + data).split("\n");
        this.rest = lines.pop() ?? "";
        for (const line of lines)
            this.take(line);
    }
    take(line) {
        let message;
        try {
            message = JSON.parse(line);
        }
        catch {
            return;
        }
        if (!isObject(message) || typeof message.id !== "number")
            return;
        const one = this.waiting.get(message.id);
        if (!one)
            return;
        this.waiting.delete(message.id);
        clearTimeout(one.timer);
        if (isObject(message.error))
            one.reject(new Error(text(message.error.message) || "refused"));
        else
            one.settle(message.result);
    }
}
