import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { asProblem, call, type Name, type Problem, type RequestOf, type ResultOf } from "./client";
import { onEvent } from "./events";

/** A partly loaded list. Missing rows are `undefined` until they are needed. */
export interface Paged<T> {
  rows: readonly (T | undefined)[];
  problem: Problem | undefined;
  /** True if no row is loaded yet. */
  first: boolean;
  /** Report the visible range, so that missing rows are loaded. */
  want: (from: number, to: number) => void;
  refresh: () => void;
}

interface Known<T> {
  rows: (T | undefined)[];
  problem: Problem | undefined;
  first: boolean;
}

const SIZE = 100;
const MOST_ROWS = 1_000_000;

/** Load the rows of an operation with `limit` and `offset` as they become visible, and again after these events. */
export function usePaged<N extends Name, T>(
  name: N,
  request: Omit<RequestOf<N>, "limit" | "offset">,
  parts: {
    rows: (result: ResultOf<N>) => readonly T[];
    total: (result: ResultOf<N>) => number;
    on?: readonly string[];
    /** The paging fields, if they are not `limit` and `offset`. */
    ask?: (offset: number, limit: number) => Partial<RequestOf<N>>;
  },
): Paged<T> {
  const key = `${name} ${JSON.stringify(request)}`;
  const known = useSignal<Known<T>>({ rows: [], problem: undefined, first: true });
  const running = useRef(new Map<number, AbortController>());
  const range = useRef({ from: 0, to: SIZE - 1 });
  const stale = useRef(new Set<number>());

  const load = async (page: number, anew: boolean) => {
    if (running.current.has(page)) return;
    const controller = new AbortController();
    running.current.set(page, controller);
    const part = parts.ask?.(page * SIZE, SIZE) ?? { limit: SIZE, offset: page * SIZE };
    const asked = { ...request, ...part } as RequestOf<N>;
    try {
      const result = await call(name, asked, controller.signal);
      const total = Math.min(parts.total(result), MOST_ROWS);
      const rows = anew ? new Array<T | undefined>(total).fill(undefined) : known.peek().rows.slice();
      rows.length = total;
      stale.current.delete(page);
      for (const [index, row] of parts.rows(result).entries()) rows[page * SIZE + index] = row;
      known.value = { rows, problem: undefined, first: false };
    } catch (error) {
      if (!controller.signal.aborted) known.value = { ...known.peek(), problem: asProblem(error), first: false };
    }
    if (running.current.get(page) === controller) running.current.delete(page);
  };
  const want = (from: number, to: number) => {
    range.current = { from, to };
    const { rows } = known.peek();
    for (let page = Math.floor(from / SIZE); page <= Math.floor(to / SIZE); page++) {
      const missing = rows.findIndex((row, index) => row === undefined && Math.floor(index / SIZE) === page);
      if (missing >= 0 || stale.current.has(page)) load(page, false);
    }
  };
  const stop = () => {
    for (const one of running.current.values()) one.abort();
    running.current.clear();
  };
  const refresh = async () => {
    stop();
    stale.current.clear();
    await load(Math.floor(range.current.from / SIZE), true);
    want(range.current.from, range.current.to);
  };

  // Visible rows stay until they are read again; the others are read when needed.
  const renew = () => {
    const { length } = known.peek().rows;
    if (!length) return refresh();
    stop();
    for (let page = 0; page * SIZE < length; page++) stale.current.add(page);
    want(range.current.from, Math.min(range.current.to, length));
  };

  useEffect(() => {
    range.current = { from: 0, to: SIZE - 1 };
    refresh();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const end = onEvent(({ kind }) => {
      if (kind !== "missed" && !(parts.on ?? ["memory"]).includes(kind)) return;
      clearTimeout(timer);
      timer = setTimeout(renew, 150);
    });
    return () => {
      clearTimeout(timer);
      end();
      stop();
    };
  }, [key]);

  return { ...known.value, want, refresh };
}
