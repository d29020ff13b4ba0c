import { change, useOperation } from "../../api/cache";
import { me } from "../../api/me";
import type { CostReport, WriterStatus } from "../../api/types";
import { Button } from "../../ui/controls";
import { Facts, Section } from "../../ui/layout";
import { Show } from "../../ui/states";
import { Said } from "../../ui/text";
import { attempt, toast } from "../../ui/toast";
import { money } from "./money";
import { t } from "./strings";

const MICRO = 1e6;

/** The budgets of models, and the state of the writer. */
export function Now() {
  const cost = useOperation("cost", {}, { on: ["cost", "operation"] });
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
  return (
    <div class="usage-part">
      <h3>{t.value.budget}</h3>
      {report.budgets.map((budget) => {
        const told = t.value.ofBudget(money(budget.spent / MICRO), money(budget.most / MICRO));
        return (
          <p key={budget.period} class="usage-budget">
            <span>
              {told} {t.value.spans[budget.period]}
            </span>
            <meter min={0} max={Math.max(budget.most, 1)} value={budget.spent} aria-label={told} />
          </p>
        );
      })}
      <p class="usage-note">{report.is_background_on ? t.value.budgetNote : t.value.backgroundOff}</p>
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
