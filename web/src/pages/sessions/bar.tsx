import { useOperation } from "../../api/cache";
import { setQuery } from "../../app/router";
import { Button, Segments, Select, TextField } from "../../ui/controls";
import { ProjectSelect } from "../../ui/project-select";
import { clear, type Filters, isNarrowed } from "./filters";
import { t } from "./strings";

/** The filters of the list, and the options of a search. */
export function Bar({ at }: { at: Filters }) {
  return (
    <search>
      <div class="sessions-bar">
        <TextField
          bare
          type="search"
          label={t.value.search}
          placeholder={t.value.search}
          value={at.words}
          onInput={(event) => setQuery({ q: event.currentTarget.value })}
        />
        <Tool at={at} />
        <ProjectSelect bare value={at.project} onPick={(project) => setQuery({ project })} />
        <Select
          bare
          label={t.value.period}
          value={at.period}
          options={Object.entries(t.value.periods)}
          onPick={(period) =>
            setQuery(period === "dates" ? { period: "", since: monthAgo() } : { period, since: "", until: "" })
          }
        />
        {(isNarrowed(at) || at.words) && (
          <Button look="quiet" onClick={clear}>
            {t.value.clear}
          </Button>
        )}
      </div>
      {at.period === "dates" && <Dates at={at} />}
      {at.words.trim() && <Scopes at={at} />}
    </search>
  );
}

function Tool({ at }: { at: Filters }) {
  const known = useOperation("sessions", { limit: 1 }, { on: ["session"] }).data?.tools ?? [];
  const tools = at.tool && !known.includes(at.tool) ? [at.tool, ...known] : known;
  return (
    <Select
      bare
      label={t.value.tool}
      value={at.tool}
      options={[["", t.value.allTools], ...tools.map((one) => [one, one] as const)]}
      onPick={(tool) => setQuery({ tool })}
    />
  );
}

function Dates({ at }: { at: Filters }) {
  return (
    <div class="sessions-dates">
      <TextField
        label={t.value.since}
        type="date"
        value={at.since}
        max={at.until}
        onInput={(event) => setQuery({ since: event.currentTarget.value })}
      />
      <TextField
        label={t.value.until}
        type="date"
        value={at.until}
        min={at.since}
        onInput={(event) => setQuery({ until: event.currentTarget.value })}
      />
    </div>
  );
}

function Scopes({ at }: { at: Filters }) {
  return (
    <div class="choices sessions-scopes">
      <Segments
        label={t.value.scope}
        value={at.scope}
        options={Object.entries(t.value.scopes)}
        onPick={(scope) => setQuery({ scope })}
      />
      <Segments
        label={t.value.role}
        value={at.role}
        options={Object.entries(t.value.roles)}
        onPick={(role) => setQuery({ role })}
      />
      <Select
        bare
        label={t.value.how}
        value={at.how}
        options={Object.entries(t.value.hows)}
        onPick={(how) => setQuery({ how })}
      />
    </div>
  );
}

function monthAgo(): string {
  const date = new Date();
  date.setMonth(date.getMonth() - 1);
  return date.toISOString().slice(0, 10);
}
