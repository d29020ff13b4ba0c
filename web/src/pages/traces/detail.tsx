import { useOperation } from "../../api/cache";
import type { Trace } from "../../api/types";
import { titles } from "../../app/pages";
import { number } from "../../i18n/index";
import { Badge } from "../../ui/controls";
import { Facts, Page, Section } from "../../ui/layout";
import { Show } from "../../ui/states";
import { Text } from "../../ui/text";
import { Time } from "../../ui/time";
import { dollars, duration, tokens } from "./figures";
import { t } from "./strings";

/** One call of a model, whole. */
export function Detail({ id }: { id: string }) {
  const trace = useOperation("trace", { reference: id });
  if (!trace.data) {
    return (
      <Page title={titles.value.traces}>
        <Show of={trace}>{() => null}</Show>
      </Page>
    );
  }
  return <Whole trace={trace.data} />;
}

function Whole({ trace }: { trace: Trace }) {
  return (
    <Page title={t.value.tasks[trace.task]} note={trace.model}>
      <Facts
        rows={[
          [t.value.began, <Time at={trace.at} />],
          [t.value.took, duration(trace.seconds)],
          [t.value.tokens, number(tokens(trace))],
          [t.value.cost, dollars(trace)],
          [t.value.state, trace.error && <Badge tone="bad">{t.value.failed}</Badge>],
        ]}
      />
      <Words title={t.value.prompt} words={trace.prompt} />
      <Words title={t.value.answer} words={trace.answer} />
      <Words title={t.value.error} words={trace.error} />
    </Page>
  );
}

function Words({ title, words }: { title: string; words: string }) {
  if (!words) return null;
  return (
    <Section title={title}>
      <pre class="traces-text" tabIndex={0} dir="auto">
        <Text>{words}</Text>
      </pre>
    </Section>
  );
}
