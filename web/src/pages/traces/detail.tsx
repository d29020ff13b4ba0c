import { useOperation } from "../../api/cache";
import type { NacreValuesModelsStep as Step, TraceView } from "../../api/types";
import { titles } from "../../app/pages";
import { number } from "../../i18n/index";
import { Badge } from "../../ui/controls";
import { plain } from "../../ui/hidden";
import { Facts, Page, Section } from "../../ui/layout";
import { Empty, Show } from "../../ui/states";
import { Text } from "../../ui/text";
import { Time } from "../../ui/time";
import { dollars, duration, seconds, tokens } from "./figures";
import { t } from "./strings";

/** One trace with its steps. */
export function Detail({ id }: { id: string }) {
  const view = useOperation("trace", { reference: id });
  if (!view.data) {
    return (
      <Page title={titles.value.traces}>
        <Show of={view}>{() => null}</Show>
      </Page>
    );
  }
  return <Whole view={view.data} />;
}

function Whole({ view }: { view: TraceView }) {
  const { trace } = view;
  return (
    <Page title={plain(trace.subject) || t.value.kinds[trace.kind]} note={t.value.kinds[trace.kind]}>
      <Facts
        rows={[
          [t.value.outcome, trace.outcome ? <Text>{trace.outcome}</Text> : t.value.running],
          [t.value.began, <Time at={trace.began} />],
          [t.value.took, seconds(trace)],
        ]}
      />
      <Section title={t.value.steps} note={t.value.counted(trace.steps.length)}>
        {trace.steps.length === 0 && <Empty title={t.value.noSteps} />}
        <ol class="traces-steps">
          {trace.steps.map((step, at) => (
            <li key={at} class={step.status}>
              <OneStep step={step} names={view.names} />
            </li>
          ))}
        </ol>
      </Section>
    </Page>
  );
}

function OneStep({ step, names }: { step: Step; names: Record<string, string> }) {
  const details = Object.entries(step.more).filter(([, value]) => value !== "");
  return (
    <>
      <p class="traces-step">
        <strong>{step.title}</strong>
        {step.status === "failed" && <Badge tone="bad">{t.value.failed}</Badge>}
        {step.status === "skipped" && <Badge>{t.value.skipped}</Badge>}
        {step.seconds > 0 && <span class="traces-faint">{duration(step.seconds)}</span>}
      </p>
      {step.model && (
        <p class="traces-faint">
          {[step.model, t.value.tokens(number(tokens(step))), dollars(step.cost)].filter(Boolean).join(" · ")}
        </p>
      )}
      <InOut step={step} />
      <References ids={step.refs} names={names} />
      {details.length > 0 && (
        <details class="traces-more">
          <summary>{t.value.details}</summary>
          <Facts rows={details.map(([name, value]) => [names[name] ?? name, <Text>{shown(value)}</Text>])} />
        </details>
      )}
    </>
  );
}

function shown(value: string | number): string {
  return typeof value === "number" ? number(Math.round(value * 1000) / 1000) : value;
}

function InOut({ step }: { step: Step }) {
  if (!step.input && !step.output) return null;
  return (
    <div class="traces-inout">
      <Facts
        rows={[
          [t.value.input, step.input && <Text>{step.input}</Text>],
          [t.value.output, step.output && <Text>{step.output}</Text>],
        ]}
      />
    </div>
  );
}

/** The memories in a step. Those without a name no longer exist. */
function References({ ids, names }: { ids: readonly string[]; names: Record<string, string> }) {
  const known = ids.filter((id) => names[id]);
  if (!known.length) return null;
  return (
    <ul class="traces-refs">
      {known.map((id) => (
        <li key={id}>
          <a class="link" href={`/memories/${id}`}>
            <Text>{names[id] ?? id}</Text>
          </a>
        </li>
      ))}
    </ul>
  );
}
