import { computed, signal } from "@preact/signals";
import { invalidate, useOperation } from "../../api/cache";
import { asProblem, call, type Problem } from "../../api/client";
import type { Operations, Pending } from "../../api/types";
import { texts } from "../../i18n";
import { toast, toastProblem } from "../../ui/toast";

const t = texts({
  en: { anyway: "Keep it anyway?", kept: (n: number) => `${n} kept` },
  zh: { anyway: "仍要保留吗？", kept: (n: number) => `已保留 ${n} 项` },
});

export type Item = Pending;

export type Choice = "keep" | "edit" | "merge" | "drop" | "skip" | "newer" | "older";

/** Parameters of a decision besides the item: new words, the file version they are based on, the merge target. */
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

/** Decisions since the dashboard was opened, the latest last, for undo. */
export const decisions = signal<readonly Decision[]>([]);
/** The undone item, which is shown again at once. */
const returned = signal<readonly Item[]>([]);
const settledIds = computed(() => new Set(decisions.value.map(({ item }) => item.id)));
/** Skipped items stay pending, before items that are not loaded yet. */
const skippedCount = computed(() => decisions.value.filter(({ choice }) => choice === "skip").length);
let sending: Promise<unknown> = Promise.resolve();
let unsent = 0;

export interface Queue {
  items: readonly Item[];
  /** The number of remaining items, including those not loaded yet. */
  left: number;
  problem: Problem | undefined;
  isKnown: boolean;
  refresh: () => void;
}

/** Pending items without decided and skipped ones, conflicts first. */
export function useQueue(): Queue {
  const found = useOperation(
    "review",
    { limit: PAGE * (1 + Math.floor((2 * skippedCount.value) / PAGE)) },
    { keep: true },
  );
  const settled = settledIds.value;
  const listed = found.data?.items ?? [];
  const known = new Set(returned.value.map(({ id }) => id));
  const items = [...returned.value, ...listed.filter(({ id }) => !known.has(id))].filter(({ id }) => !settled.has(id));
  return {
    items,
    left: items.length + Math.max(0, (found.data?.total ?? 0) - listed.length),
    problem: found.problem,
    isKnown: found.data !== undefined,
    refresh: found.refresh,
  };
}

/** Decide and continue at once. Decisions are sent in order; a failed one becomes pending again. */
export function decide(item: Item, choice: Choice, details: Details = {}): void {
  settle(item, choice);
  if (choice !== "skip") send(() => run(item, choice, details), item);
}

/** Keep several items. Those that a later statement contradicts stay for a decision of their own. */
export function keepAll(items: readonly Item[]): void {
  const kept = items.filter(({ later }) => !later);
  for (const item of kept) decide(item, "keep");
  toast(t.value.kept(kept.length), () => kept.map(undoLast));
}

/** Decide and continue when it is done. Throws a Problem if nothing was decided. */
export async function decideFirst(item: Item, choice: Choice, details: Details): Promise<void> {
  await run(item, choice, details);
  settle(item, choice);
  invalidate();
}

/** Undo the last decision and return it. */
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
    });
  }
  return last;
}

/** Show the skipped items again. */
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
 * Run an action after the earlier decisions. Until all are sent, the browser asks before leaving the dashboard. Then the
 * pending items are counted again, because an event may arrive seconds later on a busy machine.
 */
function inTurn(work: () => Promise<void>): void {
  if (unsent++ === 0) addEventListener("beforeunload", askToStay);
  sending = sending.then(work).finally(() => {
    if (--unsent > 0) return;
    removeEventListener("beforeunload", askToStay);
    invalidate("review");
  });
}

function askToStay(event: Event): void {
  event.preventDefault();
}

function run(item: Item, choice: Choice, { content, expected, into }: Details): Promise<unknown> {
  if (choice === "drop") return call("review-drop", { references: [item.id] });
  if (choice === "newer" || choice === "older") {
    return call("review-resolve", { reference: item.id, choice: choice === "newer" ? "keep-new" : "keep-old" });
  }
  return keep({
    references: [item.id],
    ...(content === undefined ? {} : { content }),
    ...(into ? { into } : {}),
    ...(expected ? { expected } : {}),
  });
}

/** Keep a candidate. If a later statement differs from it, ask the person first. */
async function keep(asked: Operations["review-keep"][0]): Promise<unknown> {
  try {
    return await call("review-keep", asked);
  } catch (error) {
    const problem = asProblem(error);
    if (problem.code !== "departed" || !confirm(`${problem.message}\n\n${t.value.anyway}`)) throw error;
    return call("review-keep", { ...asked, anyway: true });
  }
}
