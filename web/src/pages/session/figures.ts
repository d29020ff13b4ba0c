import type { Session, ToolCall } from "../../api/types";
import { language, number } from "../../i18n/index";
import { bare, plain } from "../../ui/hidden";

const LONGEST_HEADING = 64;

/** Return nacre's name of a session: its tool and the tool's id. */
export function idOf({ tool, native_id }: Session): string {
  return `${tool}:${native_id}`;
}

/** Return the address of a session at a turn. */
export function to(session: Session, turn?: string): string {
  const place = turn ? `?turn=${encodeURIComponent(turn)}` : "";
  return `/sessions/${encodeURIComponent(idOf(session))}${place}`;
}

/** Return the title, or the beginning, or the id. */
export function nameOf(session: Session, opening: string | null): string {
  return plain(bare(session.title ?? session.label ?? opening ?? session.native_id));
}

/** Return the heading, at most about two lines. */
export function headingOf(session: Session, opening: string | null): string {
  const name = nameOf(session, opening);
  if (session.title || name.length <= LONGEST_HEADING) return name;
  const cut = name.lastIndexOf(" ", LONGEST_HEADING);
  return `${name.slice(0, cut > LONGEST_HEADING / 2 ? cut : LONGEST_HEADING)} …`;
}

/** Return the time of a day. */
export function clock(at: string): string {
  return new Intl.DateTimeFormat(language.value, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" }).format(
    new Date(at),
  );
}

/** Format a duration (ISO 8601) in the best unit; empty below a minute. */
export function spent(duration: string | null): string {
  const [, days = 0, hours = 0, minutes = 0, seconds = 0] =
    duration?.match(/P(?:(\d+)D)?T?(?:([\d.]+)H)?(?:([\d.]+)M)?(?:([\d.]+)S)?/) ?? [];
  const total = Number(days) * 1440 + Number(hours) * 60 + Number(minutes) + Number(seconds) / 60;
  if (total < 1) return "";
  if (total < 90) return unit(Math.round(total), "minute");
  return unit(Math.round(total / 6) / 10, "hour");
}

function unit(value: number, name: string): string {
  return number(value, { style: "unit", unit: name, unitDisplay: "short" });
}

/** Return true if a call is known to have failed. */
export function isFailed({ outcome }: ToolCall): boolean {
  return outcome !== null && outcome !== "ok" && outcome !== "exit 0";
}

/** Count the calls of each tool: "Bash ×3, Edit". */
export function tally(calls: readonly ToolCall[]): string {
  const counted = new Map<string, number>();
  for (const { name } of calls) counted.set(name, (counted.get(name) ?? 0) + 1);
  return [...counted].map(([name, times]) => (times > 1 ? `${name} ×${times}` : name)).join(", ");
}
