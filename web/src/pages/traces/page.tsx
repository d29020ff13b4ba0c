import { useOperation } from "../../api/cache";
import type { Task, Trace } from "../../api/types";
import { type PageProps, titles } from "../../app/pages";
import { query, setQuery } from "../../app/router";
import { Badge, Select } from "../../ui/controls";
import { Page } from "../../ui/layout";
import { List } from "../../ui/list";
import { Empty, Show } from "../../ui/states";
import { Text } from "../../ui/text";
import { Time } from "../../ui/time";
import { Detail } from "./detail";
import { dollars, duration } from "./figures";
import { t } from "./strings";
import "./page.css";

const MOST = 500;
const SHOWN = 200;

export default function Traces({ params }: PageProps) {
  return params.id ? <Detail id={params.id} /> : <All />;
}

function All() {
  const task = query.value.get("task") ?? "";
  const state = query.value.get("state") ?? "";
  const traces = useOperation(
    "traces",
    { task: (task || null) as Task | null, limit: MOST },
    { keep: true, on: ["trace"] },
  );
  return (
    <Page title={titles.value.traces} note={t.value.note}>
      <search class="traces-bar">
        <Select
          bare
          label={t.value.task}
          value={task}
          options={[["", t.value.allTasks], ...Object.entries(t.value.tasks)]}
          onPick={(picked) => setQuery({ task: picked })}
        />
        <Select
          bare
          label={t.value.state}
          value={state}
          options={[
            ["", t.value.anyState],
            ["failed", t.value.failedOnly],
          ]}
          onPick={(picked) => setQuery({ state: picked })}
        />
      </search>
      <Show of={traces} lines={12}>
        {(found) => <Rows found={found.filter((trace) => !state || trace.error)} isFiltered={Boolean(task || state)} />}
      </Show>
    </Page>
  );
}

function Rows({ found, isFiltered }: { found: readonly Trace[]; isFiltered: boolean }) {
  if (!found.length) {
    return isFiltered ? <Empty title={t.value.none} /> : <Empty title={t.value.empty}>{t.value.emptyNote}</Empty>;
  }
  return (
    <>
      <p class="traces-found" role="status">
        {found.length >= MOST ? t.value.latest(found.length) : t.value.found(found.length)}
      </p>
      <List
        label={titles.value.traces}
        items={found}
        keyOf={(one) => one.id}
        height={58}
        render={(one) => <Row trace={one} />}
      />
    </>
  );
}

function Row({ trace }: { trace: Trace }) {
  return (
    <a class="traces-row" href={`/traces/${trace.id}`}>
      <span class="traces-kind">{t.value.tasks[trace.task]}</span>
      <span class="traces-subject" dir="auto">
        <Text>{trace.prompt.slice(0, SHOWN)}</Text>
      </span>
      <span class="traces-outcome">
        {trace.error && <Badge tone="bad">{t.value.failed}</Badge>}
        <span>
          <Text>{[trace.model, dollars(trace), trace.error].filter(Boolean).join(" · ")}</Text>
        </span>
      </span>
      <span class="traces-when">
        <span>{duration(trace.seconds)}</span>
        <Time at={trace.at} />
      </span>
    </a>
  );
}
