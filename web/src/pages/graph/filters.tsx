import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { useOperation } from "../../api/cache";
import type { Kind } from "../../api/types";
import { query, setQuery } from "../../app/router";
import { common } from "../../i18n/common";
import { number } from "../../i18n/index";
import { Button, Select } from "../../ui/controls";
import { colourOf } from "../../ui/kind";
import { day, dayBefore } from "../../ui/time";
import { t } from "./strings";

const KINDS = ["fact", "decision", "preference", "todo", "relationship", "event", "lesson"] as const;
const LIMITS = [300, 1000, 5000];
const DAY_MS = 86_400_000;
const YEARS_BACK = 730;
const PAUSE_MS = 150;

/** The filters of memories and links. */
export function Filters({ relations }: { relations: readonly string[] }) {
  const projects = useOperation("project-list", {});
  const asked = query.value;
  const relation = asked.get("relation") ?? "";
  const known = [...new Set([...relations, ...(relation ? [relation] : [])])];
  return (
    <div class="graph-filters">
      <Select
        bare
        label={t.value.project}
        value={asked.get("project") ?? ""}
        options={[
          ["", t.value.allProjects],
          ...(projects.data ?? []).map((one) => [one.slug, one.name || one.slug] as const),
        ]}
        onPick={(project) => setQuery({ project })}
      />
      <Select
        bare
        label={t.value.relation}
        value={relation}
        options={[["", t.value.allRelations], ...known.map((one) => [one, t.value.relations[one] ?? one] as const)]}
        onPick={(picked) => setQuery({ relation: picked })}
      />
      <Select
        bare
        label={t.value.limit}
        value={asked.get("limit") ?? "1000"}
        options={LIMITS.map((one) => [String(one), t.value.most(number(one))] as const)}
        onPick={(limit) => setQuery({ limit: limit === "1000" ? null : limit })}
      />
      <label class="graph-alike">
        <input
          type="checkbox"
          checked={asked.has("alike")}
          onChange={(event) => setQuery({ alike: event.currentTarget.checked ? "1" : null })}
        />
        {t.value.alike}
      </label>
    </div>
  );
}

/** The colours of kinds, each with a switch. */
export function Kinds() {
  const asked = query.value.get("kinds");
  const chosen = new Set<string>(asked ? asked.split(",") : KINDS);
  const turn = (kind: Kind) => {
    const next = KINDS.filter((one) => (one === kind ? !chosen.has(one) : chosen.has(one)));
    setQuery({ kinds: next.length === KINDS.length || !next.length ? null : next.join(",") });
  };
  return (
    <fieldset class="graph-kinds">
      <legend class="sr-only">{t.value.kinds}</legend>
      {KINDS.map((kind) => (
        <button key={kind} type="button" aria-pressed={chosen.has(kind)} onClick={() => turn(kind)}>
          <svg width="9" height="9" aria-hidden="true">
            <circle cx="4.5" cy="4.5" r="4.5" fill={colourOf(kind)} />
          </svg>
          {common.value.kinds[kind]}
        </button>
      ))}
      <span class="graph-legend">
        <svg width="9" height="9" aria-hidden="true">
          <circle cx="4.5" cy="4.5" r="4.5" fill="var(--other)" />
        </svg>
        {t.value.outside}
      </span>
    </fieldset>
  );
}

/** The graph on a past day, as known today. The address has the day; the slider only while moving. */
export function AsOf() {
  const year = useOperation("activity", {}, { on: [] });
  const asked = query.value.get("as_of");
  const moved = useSignal<number | null>(null);
  const today = dayNumber(Date.parse(dayBefore(0)));
  const first = dayNumber(Date.parse(year.data?.calendar[0]?.day ?? "")) || today - YEARS_BACK;
  const days = Math.max(30, today - first);
  const back = moved.value ?? Math.max(0, today - (dayNumber(Date.parse(asked ?? "")) || today));
  const at = new Date((today - back) * DAY_MS).toISOString().slice(0, 10);
  useEffect(() => {
    if (moved.value === null) return;
    const timer = setTimeout(() => {
      setQuery({ as_of: back ? at : null });
      moved.value = null;
    }, PAUSE_MS);
    return () => clearTimeout(timer);
  }, [moved.value]);
  const told = back ? day(at) : t.value.now;
  return (
    <div class="graph-time">
      <label>
        <span>{t.value.asOf}</span>
        <input
          type="range"
          min={-days}
          max={0}
          value={-back}
          aria-valuetext={told}
          onInput={(event) => (moved.value = -Number(event.currentTarget.value))}
        />
      </label>
      <output>{told}</output>
      {back > 0 && (
        <Button
          look="quiet"
          onClick={() => {
            moved.value = null;
            setQuery({ as_of: null });
          }}
        >
          {t.value.backToNow}
        </Button>
      )}
    </div>
  );
}

/** Return a moment's day in UTC, as used in addresses. */
function dayNumber(moment: number): number {
  return Math.floor(moment / DAY_MS);
}
