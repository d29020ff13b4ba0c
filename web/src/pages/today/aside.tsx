import { change, useOperation } from "../../api/cache";
import { me } from "../../api/me";
import { number } from "../../i18n/index";
import { Button } from "../../ui/controls";
import { bare } from "../../ui/hidden";
import { Facts } from "../../ui/layout";
import { Said, Text } from "../../ui/text";
import { Time } from "../../ui/time";
import { attempt, toast } from "../../ui/toast";
import type { Today } from "./page";
import { t } from "./strings";

const MICRO = 1_000_000;
const SHOWN = 6;

/** Health, background work with its costs, and the latest operations. */
export function Aside({ today }: { today: Today }) {
  return (
    <aside class="aside today-aside">
      <Health today={today} />
      <Background today={today} />
      <Changed today={today} />
    </aside>
  );
}

function Health({ today }: { today: Today }) {
  return (
    <section>
      <h2>{t.value.health}</h2>
      {!today.problems.length && <p class="today-well">{t.value.well}</p>}
      <ul class="today-lines">
        {today.problems.map((one) => (
          <li key={one.name} class="today-problem">
            {one.name}: <Said>{one.detail}</Said>
          </li>
        ))}
      </ul>
      {today.problems.length > 0 && (
        <a class="link" href="/settings?view=checks">
          {t.value.doctor}
        </a>
      )}
    </section>
  );
}

/** The writer's state, the costs, and the budget. */
function Background({ today }: { today: Today }) {
  const budget = useOperation("cost", {}, { on: ["cost", "operation"] }).data?.budget;
  const writer = useOperation("writer", {}, { on: ["cost", "operation"] }).data;
  const isPaused = writer?.state === "paused";
  const turn = () =>
    attempt(async () => {
      await change(isPaused ? "writer-resume" : "writer-pause", {});
      toast(isPaused ? t.value.resumed : t.value.paused);
    });
  return (
    <section>
      <h2>{t.value.background}</h2>
      {writer && <p class="faint">{t.value.states[writer.state] ?? writer.state}</p>}
      {writer?.problem && (
        <p class="today-problem">
          <Said>{writer.problem}</Said>
        </p>
      )}
      {writer && writer.state !== "off" && me.value?.owner && (
        <Button onClick={turn}>{isPaused ? t.value.goOn : t.value.pause}</Button>
      )}
      {today.cost_month === 0 ? (
        <p class="faint">{t.value.noCost}</p>
      ) : (
        <Facts
          rows={[
            [t.value.today, money(today.cost / MICRO)],
            [t.value.month, money(today.cost_month / MICRO)],
            ...(budget
              ? [[t.value.budget, t.value.of(money(budget.spent / MICRO), money(budget.most / MICRO))] as const]
              : []),
          ]}
        />
      )}
    </section>
  );
}

function money(value: number): string {
  return number(value, { style: "currency", currency: "USD", maximumFractionDigits: value < 1 ? 4 : 2 });
}

function Changed({ today }: { today: Today }) {
  if (!today.operations.length) return null;
  return (
    <section>
      <h2>{t.value.changed}</h2>
      <ul class="today-lines">
        {today.operations.slice(0, SHOWN).map((one) => (
          <li key={one.id} class="today-change">
            <span>{t.value.actions[one.action] ?? one.action}</span>
            <span class="clip today-change-subject" dir="auto">
              <Text>{bare(one.subject ?? one.why ?? "")}</Text>
            </span>
            <Time at={one.at} />
          </li>
        ))}
      </ul>
    </section>
  );
}
