import { useOperation } from "../../api/cache";
import type { Trace, TraceKind } from "../../api/types";
import { type PageProps, titles } from "../../app/pages";
import { query, setQuery } from "../../app/router";
import { Badge, Select } from "../../ui/controls";
import { Page } from "../../ui/layout";
import { List } from "../../ui/list";
import { Empty, Show } from "../../ui/states";
import { Text } from "../../ui/text";
import { Time } from "../../ui/time";
import { Detail } from "./detail";
import { failed, seconds, titleOf } from "./figures";
import { t } from "./strings";
import "./page.css";

const MOST = 500;

export default function Traces({ params }: PageProps) {
  return params.id ? <Detail id={params.id} /> : <All />;
}

function All() {
  const kind = query.value.get("kind") ?? "";
  const state = query.value.get("state") ?? "";
  const traces = useOperation(
    "traces",
    { kind: (kind || null) as TraceKind | null, limit: MOST },
    { keep: true, on: ["trace"] },
  );
  return (
    <Page title={titles.value.traces} note={t.value.note}>
      <search class="traces-bar">
        <Select
          bare
          label={t.value.kind}
          value={kind}
          options={[["", t.value.allKinds], ...Object.entries(t.value.kinds)]}
          onPick={(picked) => setQuery({ kind: picked })}
        />
        <Select
          bare
          label={t.value.state}
          value={state}
          options={[
            ["", t.value.anyState],
            ["failed", t.value.failedOnly],
            ["asked", t.value.askedOnly],
          ]}
          onPick={(picked) => setQuery({ state: picked })}
        />
      </search>
      <Show of={traces} lines={12}>
        {(found) => <Rows found={found.filter((one) => fits(one, state))} isFiltered={Boolean(kind || state)} />}
      </Show>
    </Page>
  );
}

function fits(trace: Trace, state: string): boolean {
  if (state === "failed") return failed(trace);
  return state !== "asked" || trace.steps.some((step) => step.model);
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
  const models = trace.steps.filter((step) => step.model).length;
  return (
    <a class="traces-row" href={`/traces/${trace.id}`}>
      <span class="traces-kind">{t.value.kinds[trace.kind]}</span>
      <span class="traces-subject" dir="auto">
        <Text>{titleOf(trace)}</Text>
      </span>
      <span class="traces-outcome">
        {failed(trace) && <Badge tone="bad">{t.value.failed}</Badge>}
        {models > 0 && <Badge>{t.value.calls(models)}</Badge>}
        <span>
          <Text>{trace.outcome || t.value.running}</Text>
        </span>
      </span>
      <span class="traces-when">
        <span>{seconds(trace)}</span>
        <Time at={trace.began} />
      </span>
    </a>
  );
}
