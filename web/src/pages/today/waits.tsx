import { placeOf } from "../../ui/memory-facts";
import { Text } from "../../ui/text";
import type { Today } from "./page";
import { t } from "./strings";

type Waiting = Today["waiting"];

/** What waits for a decision: how much, and the first of it. */
export function Waits({ waiting }: { waiting: Waiting }) {
  const doubts = waiting.reviews.reduce((sum, one) => sum + one.count, 0);
  const total = waiting.candidates + waiting.conflicts + doubts;
  if (!total) return null;
  const parts = [
    waiting.candidates && t.value.candidates(waiting.candidates),
    doubts && t.value.doubts(doubts),
    waiting.conflicts && t.value.conflicts(waiting.conflicts),
  ].filter(Boolean);
  return (
    <section class="today-waits">
      <header>
        <h2>{t.value.waits(total)}</h2>
        <p>{parts.join(" · ")}</p>
        {waiting.conflicts > 0 && (
          <a class="button" href="/conflicts">
            {t.value.settle(waiting.conflicts)}
          </a>
        )}
        {waiting.candidates + doubts > 0 && (
          <a class="button primary" href="/review">
            {t.value.review(waiting.candidates + doubts)}
          </a>
        )}
      </header>
      <ul>
        {first(waiting).map((one) => (
          <li key={one.key}>
            <a href={one.to}>
              <span>{one.what}</span>
              <span class="today-waits-text" dir="auto">
                <Text>{one.text}</Text>
              </span>
              <span>{one.project}</span>
            </a>
          </li>
        ))}
      </ul>
    </section>
  );
}

function first(waiting: Waiting) {
  const conflicts = waiting.first_conflicts.slice(0, 2).map(({ older, newer }) => ({
    key: older.id + newer.id,
    to: "/conflicts",
    what: t.value.conflict,
    text: newer.subject,
    project: placeOf(newer),
  }));
  const doubts = waiting.first_reviews.slice(0, 2).map(({ memory }) => ({
    key: `doubt ${memory.id}`,
    to: "/review",
    what: t.value.doubt,
    text: memory.subject,
    project: placeOf(memory),
  }));
  const candidates = waiting.first_candidates.map(({ memory }) => ({
    key: memory.id,
    to: "/review",
    what: t.value.candidate,
    text: memory.subject,
    project: placeOf(memory),
  }));
  return [...conflicts, ...doubts, ...candidates].slice(0, 4);
}
