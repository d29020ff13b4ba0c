import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { useOperation } from "../../api/cache";
import type { Kind } from "../../api/types";
import { query, setQuery } from "../../app/router";
import { common } from "../../i18n/common";
import { number } from "../../i18n/index";
import { Button, Select } from "../../ui/controls";
import { colourOf } from "../../ui/kind";
import { day } from "../../ui/time";
import { t } from "./strings";

const KINDS = ["fact", "decision", "preference", "todo", "relationship", "event", "lesson"] as const;
const LIMITS = [300, 1000, 5000];
const DAY_MS = 86_400_000;
const YEARS_BACK = 730;
const PAUSE_MS = 150;

/** Which memories and links are drawn. */
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

/** The colours, each a kind that can be left out. */
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

/** The graph as it was true on a day, by what is known now. */
export function AsOf() {
  const year = useOperation("activity", {}, { on: [] });
  const asked = query.value.get("as_of");
  const first = Date.parse(year.data?.calendar[0]?.day ?? "") || Date.now() - YEARS_BACK * DAY_MS;
  const days = Math.max(30, Math.ceil((Date.now() - first) / DAY_MS));
  const back = useSignal(0);
  useEffect(() => {
    back.value = asked ? Math.round((Date.now() - Date.parse(asked)) / DAY_MS) : 0;
  }, [asked]);
  const at = new Date(Date.now() - back.value * DAY_MS).toISOString().slice(0, 10);
  useEffect(() => {
    const timer = setTimeout(() => setQuery({ as_of: back.value ? at : null }), PAUSE_MS);
    return () => clearTimeout(timer);
  }, [back.value]);
  const told = back.value ? day(at) : t.value.now;
  return (
    <div class="graph-time">
      <label>
        <span>{t.value.asOf}</span>
        <input
          type="range"
          min={-days}
          max={0}
          value={-back.value}
          aria-valuetext={told}
          onInput={(event) => (back.value = -Number(event.currentTarget.value))}
        />
      </label>
      <output>{told}</output>
      {back.value > 0 && (
        <Button look="quiet" onClick={() => (back.value = 0)}>
          {t.value.backToNow}
        </Button>
      )}
    </div>
  );
}
