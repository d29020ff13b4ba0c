import { signal } from "@preact/signals";
import { common } from "../i18n/common";
import { language } from "../i18n/index";

const MINUTE = 60_000;
const now = signal(Date.now());
setInterval(() => {
  now.value = Date.now();
}, MINUTE);

const STEPS: readonly [Intl.RelativeTimeFormatUnit, number][] = [
  ["minute", 60],
  ["hour", 60],
  ["day", 24],
];

/** A relative time within two days, else the day. The title has the full time. */
export function Time({ at }: { at: string }) {
  return (
    <time dateTime={at} title={full(at)}>
      {ago(at, now.value, language.value)}
    </time>
  );
}

/** Return a time in words, relative to another. */
export function ago(at: string, seen: number, shown: string): string {
  if (isUnknown(at)) return common.value.unknown;
  const seconds = (Date.parse(at) - seen) / 1000;
  if (Number.isNaN(seconds)) return at;
  if (Math.abs(seconds) > 2 * 86_400) return day(at, seen, shown);
  const relative = new Intl.RelativeTimeFormat(shown, { numeric: "auto", style: "short" });
  let value = seconds / 60;
  let unit: Intl.RelativeTimeFormatUnit = "minute";
  for (const [next, size] of STEPS.slice(1)) {
    if (Math.abs(value) < size) break;
    value /= size;
    unit = next;
  }
  return relative.format(Math.trunc(value), unit);
}

/** Return a date as a day, without the current year. */
export function day(at: string, seen = Date.now(), shown: string = language.peek()): string {
  if (isUnknown(at)) return common.value.unknown;
  const date = dateOf(at);
  const sameYear = date.getFullYear() === new Date(seen).getFullYear();
  const year = sameYear ? {} : ({ year: "numeric" } as const);
  return new Intl.DateTimeFormat(shown, { day: "numeric", month: "short", ...year }).format(date);
}

/** Return the heading of a day in a list: today, yesterday, or weekday and date. */
export function dayHeading(at: string, seen = Date.now()): string {
  if (isUnknown(at)) return capital(common.value.unknown);
  const shown = language.value;
  const days = Math.round((startOf(new Date(seen)) - startOf(dateOf(at))) / 86_400_000);
  if (days === 0) return capital(common.value.today);
  if (days === 1) return capital(common.value.yesterday);
  const weekday = days < 7 ? ({ weekday: "long" } as const) : {};
  return new Intl.DateTimeFormat(shown, { ...weekday, day: "numeric", month: "long", year: "numeric" }).format(
    dateOf(at),
  );
}

/** Return the local day `days` days ago as an ISO date. */
export function dayBefore(days: number): string {
  const day = new Date();
  day.setDate(day.getDate() - days);
  return new Date(day.getTime() - day.getTimezoneOffset() * MINUTE).toISOString().slice(0, 10);
}

/** Return true if a time is a placeholder for an unknown one, as in the server's `is_known`. */
function isUnknown(at: string): boolean {
  return /^(?:0001|9999|1970-01-01T00:00:00Z)/.test(at);
}

function full(at: string): string {
  if (isUnknown(at)) return common.value.unknown;
  const date = dateOf(at);
  if (Number.isNaN(date.getTime())) return at;
  return new Intl.DateTimeFormat(language.value, { dateStyle: "full", timeStyle: "short" }).format(date);
}

/** Parse a day without a time as local midnight, not in Greenwich. */
function dateOf(at: string): Date {
  return new Date(/^\d{4}-\d{2}-\d{2}$/.test(at) ? `${at}T00:00` : at);
}

function startOf(date: Date): number {
  return new Date(date.getFullYear(), date.getMonth(), date.getDate()).getTime();
}

function capital(word: string): string {
  return word.charAt(0).toUpperCase() + word.slice(1);
}
