import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { asProblem, call, type Name, type Problem, type RequestOf, type ResultOf } from "./client";
import { onEvent } from "./events";

/** The cached result of an operation: its last value, loading state and problem. */
export interface Loaded<T> {
  data: T | undefined;
  problem: Problem | undefined;
  loading: boolean;
  refresh: () => void;
}

interface Entry {
  data: unknown;
  problem: Problem | undefined;
  running: AbortController | null;
  stale: boolean;
  /** Set by an event until the result is read again. */
  timer: ReturnType<typeof setTimeout> | undefined;
  users: Set<() => void>;
}

export interface Options {
  /** Events that invalidate the result. Default: all that change memories, sessions or pending reviews. */
  on?: readonly string[];
  /** Show the previous request's result until this one answers, as for a search while typing. */
  keep?: boolean;
  /** Do not send the request yet. */
  off?: boolean;
}

const CHANGES = ["memory", "session", "candidate", "doubt", "operation"] as const;
const MOST_ENTRIES = 200;
const DELAY = 150;
const entries = new Map<string, Entry>();

/**
 * Return the result of an operation: the cached value at once, then the daemon's answer, and again after an event
 * that may have changed it.
 */
export function useOperation<N extends Name>(
  name: N,
  request: RequestOf<N>,
  options: Options = {},
): Loaded<ResultOf<N>> {
  const key = `${name} ${JSON.stringify(request)}`;
  const version = useSignal(0);
  const shown = useSignal<ResultOf<N> | undefined>(undefined);
  const kinds = (options.on ?? CHANGES).join();
  const off = options.off ?? false;

  useEffect(() => {
    if (off) return;
    const entry = entryOf(key);
    const update = () => {
      version.value++;
    };
    entry.users.add(update);
    const refresh = () => load(key, name, request);
    if (entry.running === null && (entry.data === undefined || entry.stale)) refresh();
    else touch(key);
    const stop = refreshOn(entry, kinds.split(","), refresh);
    update();
    return () => {
      stop();
      entry.users.delete(update);
      if (!entry.users.size) leave(entry);
    };
  }, [key, kinds, off]);

  void version.value;
  const entry = entries.get(key);
  const data = entry?.data as ResultOf<N> | undefined;
  if (data !== undefined) shown.value = data;
  return {
    data: data ?? (options.keep ? shown.peek() : undefined),
    problem: entry?.problem,
    loading: !off && (!entry || entry.running !== null),
    refresh: () => load(key, name, request),
  };
}

/** Drop cached results of these operations (default: all). Components that show them read them again. */
export function invalidate(...names: Name[]): void {
  for (const [key, entry] of entries) {
    if (names.length && !names.includes(key.slice(0, key.indexOf(" ")) as Name)) continue;
    entry.stale = true;
    if (entry.users.size) reload(key);
  }
}

/** Run an operation that changes something, then read the shown results again. Throws a Problem. */
export async function change<N extends Name>(name: N, request: RequestOf<N>): Promise<ResultOf<N>> {
  const result = await call(name, request);
  invalidate();
  return result;
}

function reload(key: string): void {
  const cut = key.indexOf(" ");
  load(key, key.slice(0, cut) as Name, JSON.parse(key.slice(cut + 1)));
}

function entryOf(key: string): Entry {
  const known = entries.get(key);
  if (known) return known;
  const made: Entry = {
    data: undefined,
    problem: undefined,
    running: null,
    stale: false,
    timer: undefined,
    users: new Set(),
  };
  entries.set(key, made);
  if (entries.size > MOST_ENTRIES) dropOldest();
  return made;
}

function touch(key: string): void {
  const entry = entries.get(key);
  if (!entry) return;
  entries.delete(key);
  entries.set(key, entry);
}

function dropOldest(): void {
  for (const [key, entry] of entries) {
    if (entry.users.size) continue;
    entries.delete(key);
    return;
  }
}

function leave(entry: Entry): void {
  clearTimeout(entry.timer);
  entry.running?.abort();
  entry.running = null;
  entry.stale = true;
}

async function load<N extends Name>(key: string, name: N, request: RequestOf<N>): Promise<void> {
  const entry = entryOf(key);
  entry.running?.abort();
  const running = new AbortController();
  entry.running = running;
  entry.stale = false;
  told(entry);
  try {
    const data = await call(name, request, running.signal);
    if (entry.running !== running) return;
    Object.assign(entry, { data, problem: undefined });
  } catch (error) {
    if (entry.running !== running) return;
    entry.problem = asProblem(error);
  }
  entry.running = null;
  told(entry);
}

function told(entry: Entry): void {
  for (const update of entry.users) update();
}

/** Read a result again after the first of several events, and once more after closely following ones. */
function refreshOn(entry: Entry, kinds: readonly string[], refresh: () => void): () => void {
  return onEvent((event) => {
    if (event.kind !== "missed" && !kinds.includes(event.kind)) return;
    clearTimeout(entry.timer);
    entry.timer = setTimeout(refresh, DELAY);
  });
}
