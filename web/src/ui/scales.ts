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
