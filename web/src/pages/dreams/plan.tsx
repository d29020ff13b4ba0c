import { useSignal } from "@preact/signals";
import { useOperation } from "../../api/cache";
import type { DreamAction, DreamPlan, NacreReviewConsolidateStep as Step } from "../../api/types";
import { useShortcuts } from "../../app/keys";
import { titles } from "../../app/pages";
import { number } from "../../i18n/index";
import { Button } from "../../ui/controls";
import { WordDiff } from "../../ui/diff";
import { bare } from "../../ui/hidden";
import { Section } from "../../ui/layout";
import { Markdown } from "../../ui/markdown";
import { Empty } from "../../ui/states";
import { Said, Text } from "../../ui/text";
import { t } from "./strings";

const PART = /<!-- nacre:start -->\s*([\s\S]*?)\s*<!-- nacre:end -->/;

interface Numbered {
  step: Step;
  key: string;
}

/** The plan of a dream by action, with a selection of its steps. */
export function PlanView(props: { plan: DreamPlan; isBusy: boolean; onApply: (keys: readonly string[]) => void }) {
  const { plan } = props;
  const steps = plan.steps.map((step, index) => ({ step, key: plan.keys[index] ?? "" }));
  const chosen = useSignal<ReadonlySet<string>>(new Set(plan.keys));
  const ending = steps.reduce((sum, { step, key }) => sum + (chosen.value.has(key) ? step.ends.length : 0), 0);
  const keys = plan.keys.filter((key) => chosen.value.has(key));
  const toggle = (some: readonly string[], on: boolean) => {
    const next = new Set(chosen.value);
    for (const key of some) on ? next.add(key) : next.delete(key);
    chosen.value = next;
  };
  useShortcuts(titles.value.dreams, [{ keys: "ctrl+enter", says: t.value.says.apply, run: () => props.onApply(keys) }]);
  const actions = [...new Set(plan.steps.map(({ action }) => action))];
  return (
    <Section
      title={t.value.planned}
      note={`${t.value.ends(ending)}${t.value.seen(plan.seen)} · ${t.value.chosen(keys.length, steps.length)}`}
      actions={
        steps.length > 0 && (
          <Button
            look="primary"
            shortcut="Ctrl ↵"
            disabled={props.isBusy || !keys.length}
            onClick={() => props.onApply(keys)}
          >
            {t.value.apply(keys.length)}
          </Button>
        )
      }
    >
      {steps.length === 0 && (
        <Empty title={t.value.nothing}>{plan.note ? <Said>{plan.note}</Said> : t.value.nothingNote}</Empty>
      )}
      {actions.map((action) => (
        <Group
          key={action}
          action={action}
          steps={steps.filter(({ step }) => step.action === action)}
          texts={new Map(plan.texts)}
          chosen={chosen.value}
          onToggle={toggle}
        />
      ))}
      <Rest plan={plan} />
    </Section>
  );
}

function Group(props: {
  action: DreamAction;
  steps: readonly Numbered[];
  texts: ReadonlyMap<string, string>;
  chosen: ReadonlySet<string>;
  onToggle: (keys: readonly string[], on: boolean) => void;
}) {
  const { action, steps, chosen } = props;
  const keys = steps.map(({ key }) => key);
  const title = t.value.actions[action];
  return (
    <section class="dream-group">
      <h3>
        <label>
          <input
            type="checkbox"
            aria-label={t.value.allOf(title)}
            checked={keys.every((key) => chosen.has(key))}
            onChange={(event) => props.onToggle(keys, event.currentTarget.checked)}
          />
          {title}
        </label>
        <span>{number(steps.length)}</span>
      </h3>
      <ul>
        {steps.map(({ step, key }) => (
          <li key={key}>
            <input
              type="checkbox"
              aria-label={step.subject}
              checked={chosen.has(key)}
              onChange={(event) => props.onToggle([key], event.currentTarget.checked)}
            />
            <div>
              <Head step={step} />
              <p class="dream-why">
                <Said>{step.why}</Said>
                {step.by && `, ${t.value.by(step.by)}`}
              </p>
              <Changes step={step} texts={props.texts} />
            </div>
          </li>
        ))}
      </ul>
    </section>
  );
}

function Head({ step }: { step: Step }) {
  const id = step.into ?? step.ends[0];
  const subject = <Text>{bare(step.subject)}</Text>;
  return (
    <p class="dream-subject" dir="auto">
      {id ? <a href={`/memories/${id}`}>{subject}</a> : subject}
    </p>
  );
}

/** The text changes of a step: ended memories next to the kept one, or the part of a page. */
function Changes({ step, texts }: { step: Step; texts: ReadonlyMap<string, string> }) {
  if (step.action === "page") return <PagePart step={step} />;
  const stays = step.words || texts.get(step.into ?? "");
  const told = step.ends.map((id) => texts.get(id)).filter((text) => text !== undefined);
  if (!stays || !told.length) return null;
  return (
    <div class="dream-changes">
      {told.map((text) => (
        <WordDiff key={text} before={text} after={stays} />
      ))}
      {step.words && step.into && (
        <>
          <p class="dream-stays">{t.value.stays}</p>
          <WordDiff before={texts.get(step.into) ?? ""} after={step.words} />
        </>
      )}
    </div>
  );
}

function PagePart({ step }: { step: Step }) {
  const request = step.project ? ({ name: "project", project: step.project } as const) : ({ name: "profile" } as const);
  const page = useOperation("page-own", request, { on: [] });
  const before = PART.exec(page.data?.text ?? "")?.[1];
  return (
    <div class="dream-changes">
      {before ? <WordDiff before={before} after={step.words} /> : <Markdown>{step.words}</Markdown>}
    </div>
  );
}

/** Folded lists of waiting, refused and examined items. */
function Rest({ plan }: { plan: DreamPlan }) {
  return (
    <div class="dream-rest">
      {plan.note && plan.steps.length > 0 && (
        <p>
          <Said>{plan.note}</Said>
        </p>
      )}
      {plan.brought_back > 0 && <p>{t.value.broughtBack(plan.brought_back)}</p>}
      {plan.put_off.length > 0 && (
        <details>
          <summary>{t.value.putOff(plan.put_off.length)}</summary>
          <ul>
            {plan.put_off.map((step) => (
              <li key={`${step.action} ${step.subject} ${step.ends.join()}`} dir="auto">
                <Text>{bare(step.subject)}</Text>
              </li>
            ))}
          </ul>
        </details>
      )}
      {plan.refused.length > 0 && (
        <details>
          <summary>{t.value.refused(plan.refused.length)}</summary>
          <ul>
            {plan.refused.map(([step, why]) => (
              <li key={`${step.subject} ${step.ends.join()}`} dir="auto">
                <Text>{bare(step.subject)}</Text>: <Said>{why}</Said>
              </li>
            ))}
          </ul>
        </details>
      )}
      {plan.unwritten.map(([path, why]) => (
        <p key={path} dir="auto">
          {path}: <Said>{why}</Said>
        </p>
      ))}
    </div>
  );
}
