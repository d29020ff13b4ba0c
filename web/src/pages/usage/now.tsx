import { change, useOperation } from "../../api/cache";
import { me } from "../../api/me";
import type { CostReport, WriterStatus } from "../../api/types";
import { language } from "../../i18n/index";
import { Button } from "../../ui/controls";
import { Facts, Section } from "../../ui/layout";
import { Show } from "../../ui/states";
import { Said } from "../../ui/text";
import { attempt, toast } from "../../ui/toast";
import { money } from "./money";
import { t } from "./strings";

const MICRO = 1e6;

/** Today's budget and costs of models, and the state of the writer. */
export function Now() {
  const cost = useOperation("cost", { days: 1 }, { on: ["cost", "operation"] });
  const writer = useOperation("writer", {}, { on: ["cost", "operation", "session"] });
  return (
    <Section title={t.value.now}>
      <div class="usage-now">
        <Show of={cost} lines={3}>
          {(report) => <Budgets report={report} />}
        </Show>
        <Show of={writer} lines={3}>
          {(status) => <Writer status={status} />}
        </Show>
      </div>
    </Section>
  );
}

function Budgets({ report }: { report: CostReport }) {
  const resets = new Intl.DateTimeFormat(language.value, { hour: "2-digit", minute: "2-digit" }).format(
    new Date(report.resets),
  );
  return (
    <div class="usage-part">
      <h3>{t.value.budget}</h3>
      {report.budgets.map((one) => {
        const told = t.value.ofBudget(money(one.spent / MICRO), money(one.most / MICRO));
        return (
          <p key={one.task ?? ""} class="usage-budget">
            <span>
              {told} {one.task && t.value.task(one.task)}
            </span>
            <meter min={0} max={Math.max(one.most, 1)} value={one.spent} aria-label={told} />
          </p>
        );
      })}
      <p class="usage-note">{report.is_background_on ? t.value.budgetNote(resets) : t.value.backgroundOff}</p>
      {report.refused.map((one) => (
        <p key={`${one.day} ${one.task} ${one.reason}`} class="usage-warning">
          {t.value.refused(one.task, t.value.reasons[one.reason] ?? one.reason, one.times)}
        </p>
      ))}
    </div>
  );
}

function Writer({ status }: { status: WriterStatus }) {
  const isOff = status.state === "off";
  const isPaused = status.state === "paused";
  const turn = () =>
    attempt(async () => {
      await change(isPaused ? "writer-resume" : "writer-pause", {});
      toast(isPaused ? t.value.resumed : t.value.paused);
    });
  return (
    <div class="usage-part">
      <h3>{t.value.writer}</h3>
      {isOff ? (
        <p>{t.value.noWriter}</p>
      ) : (
        <>
          <Facts
            rows={[
              [status.writer, t.value.states[status.state] ?? status.state],
              ["", t.value.tokensToday(status.tokens_today, status.limit)],
              ["", status.waiting > 0 && t.value.waiting(status.waiting)],
            ]}
          />
          {me.value?.owner && <Button onClick={turn}>{isPaused ? t.value.resume : t.value.pause}</Button>}
        </>
      )}
      {status.problem && (
        <p class="usage-warning">
          <Said>{status.problem}</Said>
        </p>
      )}
      {status.hint && (
        <p class="usage-note">
          <Said>{status.hint}</Said>
        </p>
      )}
    </div>
  );
}
