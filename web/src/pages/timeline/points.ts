import type { Belief, Memory, SessionLine } from "../../api/types";
import { bare } from "../../ui/hidden";
import { nameOf, to } from "../session/figures";

/** A point of the picture. `old` is the point of the decision that it replaces. */
export interface Point {
  key: string;
  at: number;
  kind: "decision" | "replaced" | "session";
  words: string;
  href: string;
  memory?: Memory;
  replaces?: Point[];
  turns?: number;
  tool?: string;
}

/** Return the decisions of a project as points, oldest first. */
export function decisionsOf(beliefs: readonly Belief[]): Point[] {
  const found: Point[] = [];
  for (const { memory, replaced } of beliefs) {
    const chain = [memory, ...replaced].map((one, index) => pointOf(one, index > 0));
    for (const point of chain) {
      point.replaces = chain.filter(({ memory: old }) => old?.superseded_by === point.memory?.id);
    }
    found.push(...chain);
  }
  return found.toSorted((one, other) => one.at - other.at);
}

function pointOf(memory: Memory, isReplaced: boolean): Point {
  return {
    key: memory.id,
    at: Date.parse(memory.valid.since ? `${memory.valid.since}T12:00` : memory.created),
    kind: isReplaced ? "replaced" : "decision",
    words: bare(memory.subject),
    href: `/memories/${memory.id}`,
    memory,
  };
}

/** Return the sessions with a known time as points, oldest first. */
export function sessionsOf(lines: readonly SessionLine[]): Point[] {
  return lines
    .map(({ session, opening }) => ({
      key: String(session.row),
      at: Date.parse(session.session.started ?? session.ended ?? ""),
      kind: "session" as const,
      words: nameOf(session.session, opening),
      href: to(session.session),
      turns: session.turns,
      tool: session.session.tool,
    }))
    .filter(({ at }) => at > DAY_MS)
    .toSorted((one, other) => one.at - other.at);
}

const DAY_MS = 86_400_000;
