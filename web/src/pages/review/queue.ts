import { computed, signal } from "@preact/signals";
import { invalidate, useOperation } from "../../api/cache";
import { call, type Problem } from "../../api/client";
import type { HeldCandidate, Memory, Pair, Reason, Review, Why } from "../../api/types";
import { toastProblem } from "../../ui/toast";

/** What waits: a candidate, or a memory of which something is in doubt; `newer` says otherwise, `suggested` may say the same. */
export interface Item {
  id: string;
  memory: Memory;
  isCandidate: boolean;
  why: Why | Reason;
  detail: string | null;
  since: string | null;
  newer: Memory | null;
}

export type Choice = "keep" | "edit" | "merge" | "replace" | "drop" | "skip";

/** What a decision needs besides the item: other words, the file they were read from, the memory it goes into. */
export interface Details {
  content?: string;
  expected?: string | null;
  into?: string;
}

interface Decision {
  item: Item;
  choice: Choice;
}

const PAGE = 50;

/** What was decided since the dashboard was opened, the last one last, so that it can be undone. */
export const decisions = signal<readonly Decision[]>([]);
/** What was undone: it is shown again at once. */
const returned = signal<readonly Item[]>([]);
const settledIds = computed(() => new Set(decisions.value.map(({ item }) => item.id)));
/** What was skipped waits on, before what is not loaded yet. */
const skippedCount = computed(() => decisions.value.filter(({ choice }) => choice === "skip").length);
let sending: Promise<unknown> = Promise.resolve();
let unsent = 0;

export interface Queue {
  items: readonly Item[];
  /** How many are left to look at, with those that are not loaded yet. */
  left: number;
  problem: Problem | undefined;
  isKnown: boolean;
  refresh: () => void;
}

/** What waits, memories in doubt first, without what was decided or skipped. */
export function useQueue(): Queue {
  const waiting = useOperation("waiting", {});
  const held = useOperation(
    "candidates",
    { limit: PAGE * (1 + Math.floor((2 * skippedCount.value) / PAGE)) },
    { keep: true },
  );
  const listed = [
    ...(waiting.data?.reviews ?? []).map((one) => inDoubt(one, waiting.data?.conflicts ?? [])),
    ...(held.data?.candidates ?? []).map(candidate),
  ];
  const settled = settledIds.value;
  const known = new Set(returned.value.map(({ id }) => id));
  const items = [...returned.value, ...listed.filter(({ id }) => !known.has(id))].filter(({ id }) => !settled.has(id));
  return {
    items: items.filter((item, index) => items.findIndex(({ id }) => id === item.id) === index),
    left: items.length + Math.max(0, (held.data?.total ?? 0) - (held.data?.candidates.length ?? 0)),
    problem: waiting.problem ?? held.problem,
    isKnown: waiting.data !== undefined && held.data !== undefined,
    refresh: () => {
      waiting.refresh();
      held.refresh();
    },
  };
}

function candidate({ memory, why, detail, found }: HeldCandidate): Item {
  return { id: memory.id, memory, isCandidate: true, why, detail, since: found, newer: null };
}

function inDoubt({ memory, entry }: Review, conflicts: readonly Pair[]): Item {
  const newer = conflicts.findLast((pair) => pair.older.id === memory.id)?.newer ?? null;
  const { reason, detail, since } = entry;
  return { id: memory.id, memory, isCandidate: false, why: reason, detail, since, newer };
}

/** Decide, and go on at once: decisions reach the daemon one after the other. One that fails waits again. */
export function decide(item: Item, choice: Choice, details: Details = {}): void {
  settle(item, choice);
  if (choice !== "skip") send(() => run(item, choice, details), item);
}

/** Decide, and go on when it is done. Throws a Problem: nothing was decided then. */
export async function decideFirst(item: Item, choice: Choice, details: Details): Promise<void> {
  await run(item, choice, details);
  settle(item, choice);
  invalidate();
}

/** Take the last decision back; returns it. */
export function undoLast(): Decision | undefined {
  const last = decisions.peek().at(-1);
  if (!last) return undefined;
  decisions.value = decisions.peek().slice(0, -1);
  returned.value = [last.item, ...returned.peek().filter(({ id }) => id !== last.item.id)];
  if (last.choice !== "skip") {
    inTurn(async () => {
      try {
        await call("review-undo", { reference: last.item.id });
      } catch (error) {
        settle(last.item, last.choice);
        toastProblem(error);
      }
      invalidate("candidates");
    });
  }
  return last;
}

/** Look again at what was skipped. */
export function unskip(): void {
  decisions.value = decisions.peek().filter(({ choice }) => choice !== "skip");
}

function settle(item: Item, choice: Choice): void {
  decisions.value = [...decisions.peek(), { item, choice }];
  returned.value = returned.peek().filter(({ id }) => id !== item.id);
}

function send(work: () => Promise<unknown>, item: Item): void {
  inTurn(async () => {
    try {
      await work();
    } catch (error) {
      decisions.value = decisions.peek().filter((one) => one.item.id !== item.id);
      toastProblem(error);
    }
  });
}

/**
 * Do it after what was decided before. Until the daemon knows all, the browser asks before it leaves the dashboard;
 * then what waits is counted again, which an event may tell seconds later on a busy machine.
 */
function inTurn(work: () => Promise<void>): void {
  if (unsent++ === 0) addEventListener("beforeunload", askToStay);
  sending = sending.then(work).finally(() => {
    if (--unsent > 0) return;
    removeEventListener("beforeunload", askToStay);
    invalidate("waiting");
  });
}

function askToStay(event: Event): void {
  event.preventDefault();
}

function run(item: Item, choice: Choice, { content, expected, into }: Details): Promise<unknown> {
  const words = { ...(content === undefined ? {} : { content }), ...(into ? { into } : {}) };
  if (choice === "replace") return call("review-replace", { references: [item.id] });
  if (choice === "drop" && item.isCandidate) return call("candidate-drop", { references: [item.id] });
  if (choice === "drop") return call("review-retire", { references: [item.id] });
  if (item.isCandidate) return call("candidate-keep", { reference: item.id, ...words });
  return call("review-dismiss", { references: [item.id], ...words, ...(expected ? { expected } : {}) });
}
