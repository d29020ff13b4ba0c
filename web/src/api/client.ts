import { signal } from "@preact/signals";
import { key } from "./key";
import type { Operations } from "./types";

export type Name = keyof Operations;
export type RequestOf<N extends Name> = Operations[N][0];
export type ResultOf<N extends Name> = Operations[N][1];

/** An error of the daemon with its hint. `code` is an error code of nacre, or `unreachable`. */
export class Problem extends Error {
  constructor(
    readonly code: string,
    message: string,
    readonly hint: string | null,
    readonly status: number,
  ) {
    super(message);
  }
}

const BASE = "/api/v1";
const JSON_TYPE = "application/json";

/** Return true if the daemon does not know this browser; `nacre open` signs it in. */
export const isStranger = signal(false);

/** Run an operation. Throws a Problem. */
export async function call<N extends Name>(name: N, request: RequestOf<N>, abort?: AbortSignal): Promise<ResultOf<N>> {
  const body = JSON.stringify(request);
  return send(`/${name}`, { method: "POST", headers: { "Content-Type": JSON_TYPE }, body, signal: abort ?? null });
}

/** Read a resource below /api/v1. Throws a Problem. */
export async function read<T>(path: string, abort?: AbortSignal): Promise<T> {
  return send(path, { signal: abort ?? null });
}

async function send<T>(path: string, options: RequestInit): Promise<T> {
  let response: Response;
  try {
    const headers = { Accept: JSON_TYPE, "X-Nacre": key() || "1", ...options.headers };
    response = await fetch(BASE + path, { ...options, headers, credentials: "same-origin" });
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new Problem("unreachable", "nacre does not answer", "nacre serve starts it", 0);
  }
  if (!response.ok) {
    const problem = await problemOf(response);
    if (problem.status === 401 || problem.code === "no_key") isStranger.value = true;
    throw problem;
  }
  return response.json() as Promise<T>;
}

async function problemOf(response: Response): Promise<Problem> {
  const told = (await response.json().catch(() => ({}))) as Record<string, unknown>;
  const text = (key: string) => (typeof told[key] === "string" ? (told[key] as string) : null);
  const message = text("detail") ?? text("title") ?? `${response.status} ${response.statusText}`;
  return new Problem(text("code") ?? "failed", message, text("hint"), response.status);
}

/** Convert any error to a Problem. */
export function asProblem(error: unknown): Problem {
  if (error instanceof Problem) return error;
  return new Problem("failed", error instanceof Error ? error.message : String(error), null, 0);
}
