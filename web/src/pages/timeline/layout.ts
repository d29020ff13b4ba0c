/** A point in time with words that have a width. */
export interface Worded {
  x: number;
  wide: number;
}

/**
 * Return the row of each label, 0 at the bottom, for points sorted by `x`; null for labels without room. A label begins
 * at its point's stem, so it lies above the rows of all later points below it, and no stem crosses a label.
 */
export function rowsOf(points: readonly Worded[], most: number): (number | null)[] {
  const rows: (number | null)[] = points.map(() => null);
  for (let index = points.length - 1; index >= 0; index--) {
    const point = points[index];
    if (!point) continue;
    let row = 0;
    for (let later = index + 1; later < points.length; later++) {
      const x = points[later]?.x ?? 0;
      if (x >= point.x + point.wide) break;
      row = Math.max(row, (rows[later] ?? -1) + 1);
    }
    if (row < most) rows[index] = row;
  }
  return rows;
}

const DAY_MS = 86_400_000;
const STEPS = [1, 2, 7, 14, 30, 61, 91, 182, 365, 730];

/** Return local midnights between two times, at most `most`. */
export function daysBetween(from: number, to: number, most: number): number[] {
  const step = STEPS.find((days) => (to - from) / DAY_MS / days <= most) ?? 3650;
  const found: number[] = [];
  const at = new Date(from);
  at.setHours(24, 0, 0, 0);
  while (at.getTime() < to) {
    found.push(at.getTime());
    at.setDate(at.getDate() + step);
  }
  return found;
}
