import type { Today } from "./page";
import { t } from "./strings";

/** The number of pending decisions by type. */
export function Waits({ today }: { today: Today }) {
  const { conflicts, doubts, candidates } = today;
  const total = conflicts + doubts + candidates;
  if (!total) return null;
  const parts = [
    conflicts && t.value.conflicts(conflicts),
    doubts && t.value.doubts(doubts),
    candidates && t.value.candidates(candidates),
  ].filter(Boolean);
  return (
    <section class="today-waits">
      <header>
        <h2>{t.value.waits(total)}</h2>
        <p>{parts.join(" · ")}</p>
        <a class="button primary" href="/review">
          {t.value.review(total)}
        </a>
      </header>
    </section>
  );
}
