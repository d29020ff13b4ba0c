/** nacre's tools for a host whose plugins can add tools: `nacre mcp`, started by the first call. */
import { type ChildProcess, spawn } from "node:child_process";

import { isObject, messageOf, type Place, text } from "./link.js";

const REVISION = "2025-11-25";
const IDLE_MS = 600_000;
const CALL_MS = 45_000;
const LONG_MS = 600_000;
const LONG = new Set(["memory_extract", "memory_admin"]);
const MOST_SERVERS = 4;

interface Waiting {
  settle: (result: unknown) => void;
  reject: (error: Error) => void;
  timer: NodeJS.Timeout;
}

export interface Told {
  text: string;
  failed: boolean;
}

/** One server for each working folder, because the folder determines the project. */
export class Servers {
  private readonly running = new Map<string, Server>();

  constructor(private readonly place: Place) {}

  /** Return a tool's answer. Rejects if nacre does not run. */
  async call(tool: string, given: unknown, folder: string, signal?: AbortSignal): Promise<Told> {
    const server = this.server(folder);
    const isLong = LONG.has(tool) || (isObject(given) && given.deep === true);
    const answer = await server.request("tools/call", { name: tool, arguments: given }, isLong ? LONG_MS : CALL_MS, signal);
    const content = isObject(answer) && Array.isArray(answer.content) ? answer.content : [];
    const texts = content.map((one) => (isObject(one) ? text(one.text) : "")).filter(Boolean);
    return { text: texts.join("\n\n"), failed: isObject(answer) && answer.isError === true };
  }

  close(): void {
    for (const server of this.running.values()) server.end("closed");
    this.running.clear();
  }

  private server(folder: string): Server {
    const known = this.running.get(folder);
    if (known && !known.isOver) return known;
    this.running.delete(folder);
    if (this.running.size >= MOST_SERVERS) {
      const [oldest, server] = this.running.entries().next().value as [string, Server];
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
  private readonly child: ChildProcess;
  private readonly waiting = new Map<number, Waiting>();
  private readonly ready: Promise<unknown>;
  private idle: NodeJS.Timeout | undefined;
  private number = 0;
  private rest = "";

  constructor(place: Place, folder: string) {
    const [command, ...first] = place.nacre as [string, ...string[]];
    const words = [...first, "mcp", "--tools", "all"];
    const environ = { ...process.env, ...place.env, NACRE_HOME: place.home };
    this.child = spawn(command, words, { cwd: folder, env: environ, stdio: ["pipe", "pipe", "ignore"], windowsHide: true });
    this.child.on("error", (error) => this.end(messageOf(error)));
    this.child.on("exit", (code) => this.end(`nacre mcp ended (${code})`));
    this.child.stdin?.on("error", () => {});
    this.child.stdout?.setEncoding("utf8").on("data", (data: string) => this.read(data));
    for (const one of [this.child, this.child.stdin, this.child.stdout]) (one as { unref?: () => void } | null)?.unref?.();
    const about = { name: "nacre-plugin", version: place.version || "0" };
    this.ready = this.send("initialize", { protocolVersion: REVISION, capabilities: {}, clientInfo: about }, CALL_MS).then(() =>
      this.write({ jsonrpc: "2.0", method: "notifications/initialized" }),
    );
    this.ready.catch(() => {});
  }

  async request(method: string, params: unknown, ms: number, signal?: AbortSignal): Promise<unknown> {
    clearTimeout(this.idle);
    await this.ready;
    try {
      return await this.send(method, params, ms, signal);
    } finally {
      clearTimeout(this.idle);
      this.idle = setTimeout(() => this.waiting.size || this.end("idle"), IDLE_MS);
      this.idle.unref();
    }
  }

  end(why: string): void {
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

  private send(method: string, params: unknown, ms: number, signal?: AbortSignal): Promise<unknown> {
    if (this.isOver) return Promise.reject(new Error("nacre mcp does not run"));
    const id = ++this.number;
    return new Promise((settle, reject) => {
      const give = (error: Error) => {
        clearTimeout(timer);
        if (!this.waiting.delete(id)) return;
        this.write({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: id } });
        reject(error);
      };
      const timer = setTimeout(() => give(new Error(`no answer within ${ms / 1000} s`)), ms);
      signal?.addEventListener("abort", () => give(new Error("cancelled")), { once: true });
      this.waiting.set(id, { settle, reject, timer });
      this.write({ jsonrpc: "2.0", id, method, params });
    });
  }

  private write(message: unknown): void {
    if (!this.isOver) this.child.stdin?.write(`${JSON.stringify(message)}\n`);
  }

  private read(data: string): void {
    const lines = (this.rest + data).split("\n");
    this.rest = lines.pop() ?? "";
    for (const line of lines) this.take(line);
  }

  private take(line: string): void {
    let message: unknown;
    try {
      message = JSON.parse(line);
    } catch {
      return;
    }
    if (!isObject(message) || typeof message.id !== "number") return;
    const one = this.waiting.get(message.id);
    if (!one) return;
    this.waiting.delete(message.id);
    clearTimeout(one.timer);
    if (isObject(message.error)) one.reject(new Error(text(message.error.message) || "refused"));
    else one.settle(message.result);
  }
}
