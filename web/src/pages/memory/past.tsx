import { useSignal } from "@preact/signals";
import { useOperation } from "../../api/cache";
import type { ResultOf } from "../../api/client";
import type { Listed } from "../../api/types";
import { Button } from "../../ui/controls";
import { Diff, WordDiff } from "../../ui/diff";
import { diffWords } from "../../ui/diffing";
import { Section } from "../../ui/layout";
import { Show } from "../../ui/states";
import { Said, Text } from "../../ui/text";
import { day, Time } from "../../ui/time";
import { t } from "./strings";

type Step = ResultOf<"history">[number];

/** The earlier versions of a memory with their differences, and the operations that touched it. */
export function History({ id }: { id: string }) {
  const steps = useOperation("history", { reference: id }).data ?? [];
  return (
    <Section title={t.value.history}>
      {steps.length > 1 && (
        <ol class="stack memory-steps">
          {steps.map((step, index) => (
            <li key={step.memory.id} class={step.is_asked ? "asked" : undefined}>
              <Period step={step} />
              <StepText step={step} before={steps[index - 1]} />
            </li>
          ))}
        </ol>
      )}
      <Changes id={id} />
    </Section>
  );
}

function Period({ step }: { step: Step }) {
  return (
    <p class="memory-period">
      {day(step.since)} – {step.until ? day(step.until) : t.value.now}
      {step.reason && (
        <span>
          <Said>{step.reason}</Said>
        </span>
      )}
    </p>
  );
}

function StepText({ step, before }: { step: Step; before: Step | undefined }) {
  const text =
    before && isAlike(before.memory.content, step.memory.content) ? (
      <WordDiff before={before.memory.content} after={step.memory.content} />
    ) : (
      <p class="word-diff">
        <Text>{step.memory.content}</Text>
      </p>
    );
  if (step.is_asked) return text;
  return <a href={`/memories/${step.memory.id}`}>{text}</a>;
}

/** Return true if two texts have enough in common for a marked difference. */
function isAlike(before: string, after: string): boolean {
  const kept = diffWords(before, after).filter((one) => one.kind === "kept");
  return kept.reduce((sum, one) => sum + one.text.length, 0) * 2 > after.length;
}

function Changes({ id }: { id: string }) {
  const log = useOperation("log", { reference: id, limit: 50 });
  return (
    <Show of={log} lines={2}>
      {(rows) => (
        <ul>
          {rows.map((one) => (
            <li key={one.operation.id}>
              <Change one={one} />
            </li>
          ))}
        </ul>
      )}
    </Show>
  );
}

function Change({ one: { operation } }: { one: Listed }) {
  const isOpen = useSignal(false);
  return (
    <>
      <div class="memory-change">
        <span>{t.value.actions[operation.action] ?? operation.action}</span>
        <span class="faint">
          <Text>{[operation.why, operation.by].filter(Boolean).join(" · ")}</Text>
        </span>
        <Time at={operation.at} />
        <Button look="quiet" aria-expanded={isOpen.value} onClick={() => (isOpen.value = !isOpen.value)}>
          {isOpen.value ? t.value.hide : t.value.show}
        </Button>
      </div>
      {isOpen.value && <Lines operation={operation.id} />}
    </>
  );
}

function Lines({ operation }: { operation: string }) {
  const found = useOperation("diff", { reference: operation }, { on: [] });
  return (
    <Show of={found} lines={3}>
      {(data) =>
        data.differences.map((one) => (
          <Diff key={one.change.memory + one.subject} lines={[...fields(one.fields), ...one.lines]} />
        ))
      }
    </Show>
  );
}

function fields(changed: readonly { name: string; before: unknown; after: unknown }[]): string[] {
  return changed.flatMap(({ name, before, after }) => [
    ...(before === null || before === undefined ? [] : [`-${name}: ${inWords(before)}`]),
    ...(after === null || after === undefined ? [] : [`+${name}: ${inWords(after)}`]),
  ]);
}

function inWords(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}
