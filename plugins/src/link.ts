/**
 * The thin way from a plugin to nacre: ask the daemon on the home's socket, else have nacre-hook look, in bounded time.
 * Nothing here throws into the host, and nothing is imported but Node's own modules.
 */
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { appendFile, existsSync, mkdirSync, readFileSync, realpathSync, renameSync, statSync, writeFileSync } from "node:fs";
import { createConnection } from "node:net";
import { homedir, platform } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const PROTOCOL = 1;
const LONGEST_PATH = 100;
const LONGEST_NAME = 200;
const MOST_ANSWER = 4_000_000;
const MOST_CHARACTERS = 9_900;
/** nacre-hook bounds itself to less than this, unless it is told otherwise. */
const USUAL_MS = 150;
/** The end of what a turn waits that nacre-hook leaves to its start and to its output. */
const SPARED_MS = 100;
/** The longest that the daemon alone is waited for; then nacre-hook looks as well. */
const MOST_PATIENCE_MS = 300;
/** So long a daemon that did not answer in time is left alone. */
const REST_MS = 30_000;
/** The same trouble is told once in this time. */
const QUIET_MS = 60_000;

/** Where nacre is on this machine: the file nacre.json that is beside a plugin, as it is installed. */
export interface Place {
  home: string;
  nacre: string[];
  hook: string[];
  env: Record<string, string>;
  version: string;
  /** So many milliseconds the host's turns may wait, where not what is usual. */
  patience?: number;
  /** Whether the host's own memory is turned off. */
  isolates: boolean;
}

/** What a host says as something happens; see the hook process of nacre. */
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

/** Which memories that other sessions just stored a session is told of. */
export interface SignalLimits {
  min_importance?: number | undefined;
  most_at_once?: number | undefined;
  cooldown_seconds?: number | undefined;
  most_per_session?: number | undefined;
  max_age_seconds?: number | undefined;
}

/** One agent tool: its name, and that of the adapter which reads its transcripts. */
export interface Host {
  name: string;
  tool: string;
  log: (message: string) => void;
  /** Where each question is told of, if the owner wants to see them. */
  debug?: (message: string) => void;
}

interface Answer {
  context: string;
  state?: unknown;
  chores?: string[];
}

/** What was found, and by whom; `late` and `failed` found nothing. */
interface Found {
  how: "daemon" | "alone" | "late" | "failed";
  context: string;
}

type Json = Record<string, unknown>;

/** What a plugin's own folder says of nacre, with what is usual where it says nothing. */
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

/** Where the daemon of a home listens. */
export function socketPath(home: string): string {
  let real = home;
  try {
    real = realpathSync(home);
  } catch {
    // a home that is not there has no daemon
  }
  const inside = join(real, "daemon.sock");
  if (Buffer.byteLength(inside) <= LONGEST_PATH) return inside;
  const base = platform() === "darwin" ? "/private/tmp" : "/tmp";
  const name = createHash("sha256").update(inside).digest("hex").slice(0, 16);
  return join(base, `nacre-${process.getuid ? process.getuid() : "user"}`, `${name}.sock`);
}

/** A text as the name of a file of the home. */
export function fileName(named: string): string {
  const name = [...named].map((one) => (/[A-Za-z0-9._-]/.test(one) ? one : `=${one.codePointAt(0)?.toString(16)}=`)).join("");
  const isPlain = name.length <= LONGEST_NAME && !name.startsWith(".");
  return isPlain ? name : createHash("sha256").update(named).digest("hex");
}

/** Talks to nacre for one host. */
export class Link {
  private restsUntil = 0;
  private readonly told = new Map<string, number>();

  constructor(
    readonly place: Place,
    private readonly host: Host,
  ) {}

  /** What the agent is to be told, within so many milliseconds; empty where there is nothing, or nothing in time. */
  async context(event: "session-start" | "prompt", call: Call, ms: number, alone = true): Promise<string> {
    const began = Date.now();
    try {
      const { how, context } = await this.first(event, call, ms, alone);
      const told = context.length <= MOST_CHARACTERS ? context : "";
      this.host.debug?.(`nacre: ${event}: ${how}, ${Date.now() - began} ms, ${told.length} characters`);
      if (event === "session-start" && (how === "late" || how === "failed")) this.owe(call);
      if (how !== "alone") this.log(event, how, Date.now() - began, told.length);
      return told;
    } catch (error) {
      this.trouble(`${event}: ${messageOf(error)}`);
      return "";
    }
  }

  /** Something is over: nacre-hook notes what is to be done, and has it done. Nobody waits for it. */
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

  /** Tell the host's log what went wrong; the same thing once a minute. */
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

  /** The answer that comes first, of the daemon or, where it is away or takes its time, of nacre-hook. */
  private first(event: string, call: Call, ms: number, alone: boolean): Promise<Found> {
    return new Promise((settle) => {
      const until = Date.now() + ms;
      let isSettled = false;
      const stops: (() => void)[] = [];
      let runs = false;
      let isAsked = false;
      let waits = 0;
      const end = (how: Found["how"], context = "") => {
        if (isSettled) return;
        isSettled = true;
        clearTimeout(deadline);
        clearTimeout(patience);
        for (const stop of stops) stop();
        settle({ how, context });
      };
      const failed = () => {
        waits -= 1;
        if (waits === 0) end("failed");
      };
      const look = () => {
        if (runs || isSettled || !alone) return;
        runs = true;
        waits += 1;
        try {
          stops.push(this.runHook(event, call, until - Date.now(), (context) => end("alone", context), failed));
        } catch (error) {
          this.trouble(`nacre-hook: ${messageOf(error)}`);
          failed();
        }
      };
      const deadline = setTimeout(() => {
        this.trouble(`${event}: no answer within ${ms} ms`);
        if (isAsked) this.restsUntil = Date.now() + REST_MS;
        end("late");
      }, ms);
      const patience = setTimeout(look, Math.min(ms * 0.25, MOST_PATIENCE_MS));
      if (Date.now() < this.restsUntil) {
        if (alone) look();
        else end("failed");
        return;
      }
      waits += 1;
      isAsked = true;
      this.ask("hook", this.request(event, call), ms, (stop) => stops.push(stop)).then(
        (result) => {
          if (isSettled) return;
          const answer = readAnswer(result);
          this.keep(call, answer);
          end("daemon", answer.context);
        },
        (error) => {
          isAsked = false;
          if (error instanceof Refused) this.trouble(error.message);
          look();
          failed();
        },
      );
    });
  }

  /** One line about what was asked, as nacre-hook writes them itself; without a word of what was said. */
  private log(event: string, how: string, ms: number, characters: number): void {
    const line = { at: Date.now() / 1000, host: this.host.name, event, how, ms, characters };
    const path = join(this.place.home, "logs", "hooks.jsonl");
    appendFile(path, `${JSON.stringify(line)}\n`, { mode: 0o600 }, () => {});
  }

  private request(event: string, call: Call): Json {
    const session = call.session ? `${this.host.tool}:${call.session}` : "";
    const { budget, ...rest } = call;
    return { host: this.host.name, event, ...rest, session, ...(budget ? { budget_tokens: budget } : {}) };
  }

  /** The daemon's answer to an operation. Rejects where there is none; `stoppable` is told how to wait no longer. */
  private ask(operation: string, request: Json, ms: number, stoppable: (stop: () => void) => void): Promise<unknown> {
    const path = socketPath(this.place.home);
    const line = JSON.stringify({ protocol: PROTOCOL, operation, request, seconds: ms / 1000 });
    return new Promise((settle, reject) => {
      if (!isOwn(path)) return reject(new Error("no daemon"));
      const parts: Buffer[] = [];
      let size = 0;
      const link = createConnection({ path });
      stoppable(() => link.destroy());
      link.on("connect", () => link.write(`${line}\n`));
      link.on("data", (data: Buffer) => {
        parts.push(data);
        size += data.length;
        if (size > MOST_ANSWER) link.destroy(new Error("the daemon says too much"));
        else if (data[data.length - 1] === 10) link.destroy();
      });
      link.on("error", reject);
      link.on("close", () => {
        try {
          settle(result(Buffer.concat(parts).toString("utf8")));
        } catch (error) {
          reject(error);
        }
      });
    });
  }

  /** Have nacre-hook look; returns how to stop it. */
  private runHook(event: string, call: Call, ms: number, done: (context: string) => void, failed: () => void): () => void {
    const child = this.spawnHook(event, ["pipe", "pipe", "ignore"], false, ms > USUAL_MS ? ["--within", `${ms - SPARED_MS}`] : []);
    const parts: Buffer[] = [];
    let size = 0;
    let isOver = false;
    const over = (told?: string) => {
      if (isOver) return;
      isOver = true;
      if (told === undefined) failed();
      else done(told);
    };
    child.on("error", (error) => {
      this.trouble(`nacre-hook: ${messageOf(error)}`);
      over();
    });
    child.stdin?.on("error", () => {});
    child.stdout?.on("data", (data: Buffer) => {
      parts.push(data);
      size += data.length;
      if (size > MOST_ANSWER) child.kill("SIGKILL");
    });
    child.on("close", (code) => over(code === 0 ? contextOf(Buffer.concat(parts).toString("utf8")) : undefined));
    child.stdin?.end(JSON.stringify(given(call)));
    return () => child.kill("SIGKILL");
  }

  private spawnHook(event: string, stdio: ("pipe" | "ignore")[], detached: boolean, options: string[] = []) {
    const [command, ...first] = this.place.hook as [string, ...string[]];
    const words = [...first, "--home", this.place.home, ...options, this.host.name, event];
    const environ = { ...process.env, ...this.place.env };
    return spawn(command, words, { stdio, detached, env: environ, windowsHide: true });
  }

  /** Keep what the session was given, now that it is, and leave what is to be done. */
  private keep(call: Call, answer: Answer): void {
    const session = `${this.host.tool}:${call.session}`;
    if (call.session && isObject(answer.state)) this.write("sessions", fileName(session), answer.state);
    for (const kind of answer.chores ?? []) {
      const { transcript = null, folder = null, reason = "", occasion = "" } = call;
      const chore = { kind, session, transcript, folder, reason, occasion, host: this.host.name, at: Date.now() / 1000 };
      this.write("chores", fileName(`${kind}-${session}`), chore);
    }
  }

  /** A session was not told what it starts with: its next prompt is. One that is gone on with may have it in sight. */
  private owe(call: Call): void {
    const name = fileName(`${this.host.tool}:${call.session}`);
    const { occasion = "startup" } = call;
    const isKnown = existsSync(join(this.place.home, "run", "sessions", `${name}.json`));
    if (!call.session || !existsSync(this.place.home) || (occasion === "resume" && isKnown)) return;
    this.write("sessions", name, { owed: occasion });
  }

  private write(folder: string, name: string, value: unknown): void {
    const inside = join(this.place.home, "run", folder);
    const fresh = join(inside, `.${process.pid}-${name.slice(0, 100)}.tmp`);
    try {
      mkdirSync(inside, { recursive: true, mode: 0o700 });
      writeFileSync(fresh, JSON.stringify(value), { mode: 0o600 });
      renameSync(fresh, join(inside, `${name}.json`));
    } catch (error) {
      this.trouble(`run/${folder}: ${messageOf(error)}`);
    }
  }
}

class Refused extends Error {}

function result(line: string): unknown {
  const answer: unknown = JSON.parse(line);
  if (!isObject(answer)) throw new Error("the answer has no shape");
  if (!isObject(answer.error)) return answer.result;
  const isElsewhere = ["other_version", "other_settings", "ending"].includes(text(answer.error.code));
  throw isElsewhere ? new Error("the daemon is of another version") : new Refused(text(answer.error.message));
}

function readAnswer(result: unknown): Answer {
  if (!isObject(result)) return { context: "" };
  const chores = Array.isArray(result.chores) ? result.chores.filter((one) => typeof one === "string") : [];
  return { context: text(result.context), state: result.state, chores };
}

/** What nacre-hook reads: the shape that most hosts share. */
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

/** What nacre-hook writes: the context itself, or JSON that holds it. */
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

/** Whether the folder of a socket is the user's alone: who listens where others can put things is told nothing. */
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
      // not there, or not to be read: what is usual holds
    }
  }
  return {};
}

export function isObject(value: unknown): value is Json {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** A value where it is text, else nothing. */
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

/** A path, where something is there; else nothing. */
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
