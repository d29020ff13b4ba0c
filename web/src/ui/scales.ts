/** Return two to six round marks from 0 to at least `most`; whole numbers for counts. */
export function ticks(most: number): number[] {
  if (most <= 0) return [0, 1];
  const rough = most / 4;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((one) => one * power).find((one) => one >= rough) ?? rough;
  const whole = Number.isInteger(most) ? Math.ceil(step) : step;
  return Array.from({ length: Math.ceil(most / whole - 1e-9) + 1 }, (_, index) =>
    Number((index * whole).toPrecision(10)),
  );
}

/** Return top and height of the parts of a bar, in `room` pixels for `top`. */
export function barHeights(values: readonly number[], top: number, room: number): [y: number, size: number][] {
  let below = 0;
  return values.map((value) => {
    const size = (value / top) * room;
    below += size;
    return [room - below, size];
  });
}

/** Return the days (ISO) of the last weeks until a day, from Monday to Sunday. */
export function weeksOf(until: string, weeks: number): string[][] {
  const last = new Date(`${until}T12:00:00Z`);
  const sunday = new Date(last.getTime() + ((7 - last.getUTCDay()) % 7) * 86_400_000);
  return Array.from({ length: weeks }, (_, week) =>
    Array.from({ length: 7 }, (_, row) => {
      const back = (weeks - 1 - week) * 7 + (6 - row);
      return new Date(sunday.getTime() - back * 86_400_000).toISOString().slice(0, 10);
    }),
  );
}

/** Return the first column of each month with a day of it, without labels that would overlap. */
export function monthsOf(weeks: readonly string[][]): [day: string, column: number][] {
  const found: [string, number][] = [];
  let month = "";
  for (const [column, week] of weeks.entries()) {
    const first = week[0] ?? "";
    if (first.slice(0, 7) === month) continue;
    month = first.slice(0, 7);
    const before = found.at(-1);
    if (before && column - before[1] < 3) found.pop();
    found.push([first, column]);
  }
  return found;
}
