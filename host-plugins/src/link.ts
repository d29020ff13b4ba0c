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

/** nacre's installation, from the file nacre.json of an installed plugin. */
export interface Place {
  home: string;
  nacre: string[];
  hook: string[];
  env: Record<string, string>;
  version: string;
  /** Maximum wait of the host's turns in milliseconds, if not the default. */
  patience?: number;
  /** True if the host's own memory is turned off. */
  isolates: boolean;
}

/** A host's event; see nacre's hook process. */
export interface Call {
  session: string;
  folder?: string;
  prompt?: string;
  occasion?: string;
  transcript?: string;
  reason?: string;
  budget?: number;
  signals?: SignalLimits;
}

/** Signals to a session about memories stored by other sessions. */
export interface SignalLimits {
  min_importance?: number | undefined;
  most_at_once?: number | undefined;
  cooldown_seconds?: number | undefined;
  most_per_session?: number | undefined;
  max_age_seconds?: number | undefined;
}

/** An agent tool: its name, and the adapter for its transcripts. */
export interface Host {
  name: string;
  tool: string;
  log: (message: string) => void;
  /** Called for each question, if the owner wants to see them. */
  debug?: (message: string) => void;
}

/** The result of a search and its source; `late` and `failed` have none. */
interface Found {
  how: "daemon" | "alone" | "late" | "failed";
  context: string;
}

type Json = Record<string, unknown>;

/** Return the configuration in a plugin's folder, with defaults. */
export function readPlace(moduleUrl: string, environ: NodeJS.ProcessEnv = process.env): Place {
  const told = firstJson(dirname(fileURLToPath(moduleUrl)));
  const home = text(told.home) || environ.NACRE_HOME || join(homedir(), ".nacre");
  const hookMs = Number(environ.NACRE_HOOK_MS ?? 0);
  const patience = typeof told.patience_ms === "number" ? told.patience_ms : hookMs > USUAL_MS ? hookMs : undefined;
  return {
    home: resolve(home.startsWith("~") ? join(homedir(), home.slice(1)) : home),
    nacre: words(told.nacre, "nacre"),
    hook: words(told.hook, "nacre-hook"),
    env: isObject(told.env) ? (told.env as Record<string, string>) : {},
    version: text(told.version),
    isolates: told.isolates === true,
    ...(patience === undefined ? {} : { patience }),
  };
}

/** Return the path of a home's socket. */
export function socketPath(home: string): string {
  let real = home;
  try {
    real = realpathSync(home);
  } catch {
    // without a home there is no daemon
  }
  const inside = join(real, "daemon.sock");
  if (Buffer.byteLength(inside) <= LONGEST_PATH) return inside;
  const base = platform() === "darwin" ? "/private/tmp" : "/tmp";
  const name = createHash("sha256").update(inside).digest("hex").slice(0, 16);
  return join(base, `nacre-${process.getuid ? process.getuid() : "user"}`, `${name}.sock`);
}

/** Connects one host to nacre. */
export class Link {
  private restsUntil = 0;
  private readonly told = new Map<string, number>();

  constructor(
    readonly place: Place,
    private readonly host: Host,
  ) {}

  /** Return the context for the agent within the time limit; empty if there is none in time. */
  async context(event: "session-start" | "prompt", call: Call, ms: number, alone = true): Promise<string> {
    const began = Date.now();
    try {
      const { how, context } = await this.first(event, call, ms, alone);
      const told = context.length <= MOST_CHARACTERS ? context : "";
      this.host.debug?.(`nacre: ${event}: ${how}, ${Date.now() - began} ms, ${told.length} characters`);
      return told;
    } catch (error) {
      this.trouble(`${event}: ${messageOf(error)}`);
      return "";
    }
  }

  /** Let nacre-hook record an event and process it, without waiting. */
  note(event: "turn-end" | "pre-compact" | "session-end", call: Call): void {
    try {
      const child = this.spawnHook(event, ["pipe", "ignore", "ignore"], true);
      child.on("error", (error) => this.trouble(`nacre-hook: ${messageOf(error)}`));
      child.stdin?.on("error", () => {});
      child.stdin?.end(JSON.stringify(given(call)));
      child.unref();
    } catch (error) {
      this.trouble(`${event}: ${messageOf(error)}`);
    }
  }

  /** Log a problem on the host, at most once a minute. */
  trouble(message: string): void {
    const now = Date.now();
    if (now - (this.told.get(message) ?? -QUIET_MS) < QUIET_MS) return;
    if (this.told.size > 100) this.told.clear();
    this.told.set(message, now);
    try {
      this.host.log(`nacre: ${message}`);
    } catch {
      // a host without a log
    }
  }

  /** Return the answer of the daemon, or of nacre-hook. */
  private async first(event: string, call: Call, ms: number, alone: boolean): Promise<Found> {
    const until = Date.now() + ms;
    if (Date.now() >= this.restsUntil) {
      const patience = alone && event === "session-start" ? Math.min(ms * 0.5, MOST_PATIENCE_MS) : ms;
      try {
        return { how: "daemon", context: await this.ask(event, call, patience) };
      } catch (error) {
        if (error instanceof Late) this.restsUntil = Date.now() + REST_MS;
      }
    }
    const left = until - Date.now();
    const context = alone && left > 0 ? await this.runHook(event, call, left) : undefined;
    if (context !== undefined) return { how: "alone", context };
    const isLate = Date.now() >= until;
    if (isLate) this.trouble(`${event}: no answer within ${ms} ms`);
    return { how: isLate ? "late" : "failed", context: "" };
  }

  /** Return the daemon's answer to a hook. Rejects if there is none in time. */
  private ask(event: string, call: Call, ms: number): Promise<string> {
    const path = socketPath(this.place.home);
    return new Promise((settle, reject) => {
      if (!isOwn(path)) return reject(new Error("no daemon"));
      const to = { socketPath: path, method: "POST", path: `/hook/${this.host.name}/${event}`, agent: false as const };
      const asked = request(to, (response) => {
        const parts: Buffer[] = [];
        let size = 0;
        response.on("data", (data: Buffer) => {
          parts.push(data);
          size += data.length;
          if (size > MOST_ANSWER) asked.destroy(new Error("the daemon says too much"));
        });
        response.on("error", reject);
        response.on("end", () => {
          clearTimeout(deadline);
          if (response.statusCode === 200) settle(Buffer.concat(parts).toString("utf8").trim());
          else reject(new Error(`the daemon answered ${response.statusCode}`));
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
  private runHook(event: string, call: Call, ms: number): Promise<string | undefined> {
    return new Promise((settle) => {
      const child = this.spawnHook(event, ["pipe", "pipe", "ignore"], false, ms > USUAL_MS ? ["--within", `${ms - SPARED_MS}`] : []);
      const deadline = setTimeout(() => {
        child.kill("SIGKILL");
        settle(undefined);
      }, ms);
      const parts: Buffer[] = [];
      let size = 0;
      child.on("error", (error) => {
        this.trouble(`nacre-hook: ${messageOf(error)}`);
        clearTimeout(deadline);
        settle(undefined);
      });
      child.stdin?.on("error", () => {});
      child.stdout?.on("data", (data: Buffer) => {
        parts.push(data);
        size += data.length;
        if (size > MOST_ANSWER) child.kill("SIGKILL");
      });
      child.on("close", (code) => {
        clearTimeout(deadline);
        settle(code === 0 ? contextOf(Buffer.concat(parts).toString("utf8")) : undefined);
      });
      child.stdin?.end(JSON.stringify(given(call)));
    });
  }

  private spawnHook(event: string, stdio: ("pipe" | "ignore")[], detached: boolean, options: string[] = []) {
    const [command, ...first] = this.place.hook as [string, ...string[]];
    const words = [...first, "--home", this.place.home, ...options, this.host.name, event];
    const environ = { ...process.env, ...this.place.env };
    return spawn(command, words, { stdio, detached, env: environ, windowsHide: true });
  }
}

class Late extends Error {}

/** The input of nacre-hook, in the format of most hosts. */
function given(call: Call): Json {
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
function contextOf(output: string): string {
  if (!output.trimStart().startsWith("{")) return output.trim();
  try {
    const told: unknown = JSON.parse(output);
    const inner = isObject(told) && isObject(told.hookSpecificOutput) ? told.hookSpecificOutput : {};
    return text(inner.additionalContext);
  } catch {
    return "";
  }
}

/** Return true if a socket's folder belongs only to the user. Sockets in other folders may be fake. */
function isOwn(path: string): boolean {
  try {
    const seen = statSync(dirname(path));
    return !process.getuid || (seen.uid === process.getuid() && (seen.mode & 0o022) === 0);
  } catch {
    return false;
  }
}

function firstJson(folder: string): Json {
  for (const path of [join(folder, "nacre.json"), join(folder, "..", "nacre.json")]) {
    try {
      const told: unknown = JSON.parse(readFileSync(path, "utf8"));
      if (isObject(told)) return told;
    } catch {
      // missing or unreadable: use the defaults
    }
  }
  return {};
}

export function isObject(value: unknown): value is Json {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Return a value if it is text. */
export function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function words(value: unknown, usual: string): string[] {
  const found = Array.isArray(value) ? value.filter((one) => typeof one === "string") : [text(value)];
  return found[0] ? found : [usual];
}

/** Return a path if it exists. */
export function there(...parts: string[]): string {
  const path = join(...parts);
  return existsSync(path) ? path : "";
}

export function userFolder(...parts: string[]): string {
  return join(homedir(), ...parts);
}

export function wait(ms: number): Promise<undefined> {
  return new Promise((settle) => setTimeout(() => settle(undefined), ms));
}
