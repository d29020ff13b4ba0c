import { computed } from "@preact/signals";
import { query, setQuery } from "../../app/router";

/** The filters in the address: of sessions, or of turns with a search. */
export interface Filters {
  words: string;
  tool: string;
  project: string;
  /** The last days; `dates`: from `since` to `until`. */
  period: string;
  since: string;
  until: string;
  scope: string;
  role: string;
  how: string;
}

export const filters = computed<Filters>(() => {
  const get = (name: string) => query.value.get(name) ?? "";
  return {
    words: get("q"),
    tool: get("tool"),
    project: get("project"),
    period: get("since") || get("until") ? "dates" : get("period"),
    since: get("since"),
    until: get("until"),
    scope: get("scope"),
    role: get("role"),
    how: get("how"),
  };
});

export function isNarrowed(at: Filters): boolean {
  return Boolean(at.tool || at.project || at.period);
}

export function clear(): void {
  setQuery({ q: "", tool: "", project: "", period: "", since: "", until: "", scope: "", role: "", how: "" });
}

/** Return the period as times, including the last day. */
export function range(at: Filters): { since: string | null; until: string | null } {
  if (at.period === "dates")
    return { since: midnight(`${at.since}T00:00`, 0), until: midnight(`${at.until}T00:00`, 1) };
  return { since: at.period ? midnight(Date.now(), -Number(at.period)) : null, until: null };
}

function midnight(day: string | number, later: number): string | null {
  const date = new Date(day);
  if (Number.isNaN(date.getTime())) return null;
  date.setHours(0, 0, 0, 0);
  date.setDate(date.getDate() + later);
  return date.toISOString();
}
