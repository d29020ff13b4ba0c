import { number } from "../../i18n/index";
import { Facts } from "../../ui/layout";
import { Said, Text } from "../../ui/text";
import { Time } from "../../ui/time";
import type { Today } from "./page";
import { t } from "./strings";

const MICRO = 1_000_000;
const SHOWN = 6;

/** Sessions, health, costs, and the latest operations. */
export function Aside({ today }: { today: Today }) {
  return (
    <aside class="today-aside">
      <Sessions today={today} />
      <Health today={today} />
      <Cost today={today} />
      <Changed today={today} />
    </aside>
  );
}

function Sessions({ today }: { today: Today }) {
  return (
    <section>
      <h2>{t.value.sessions}</h2>
      {!today.tools.length && <p class="today-none">{t.value.noSessions}</p>}
      <Facts rows={today.tools.map((one) => [one.tool, `${number(one.sessions)} · ${t.value.turns(one.turns)}`])} />
      <ul class="today-lines">
        {today.sessions.slice(0, SHOWN).map(({ session, opening }) => {
          const id = `${session.session.tool}:${session.session.native_id}`;
          return (
            <li key={id}>
              <a class="link" href={`/sessions/${encodeURIComponent(id)}`} dir="auto">
                <Text>{session.session.title ?? opening ?? id}</Text>
              </a>
            </li>
          );
        })}
      </ul>
    </section>
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
        <a class="link today-more" href="/settings?view=checks">
          {t.value.doctor}
        </a>
      )}
    </section>
  );
}

function Cost({ today }: { today: Today }) {
  return (
    <section>
      <h2>{t.value.cost}</h2>
      {today.cost_month === 0 ? (
        <p class="today-none">{t.value.noCost}</p>
      ) : (
        <Facts
          rows={[
            [t.value.today, money(today.cost / MICRO)],
            [t.value.month, money(today.cost_month / MICRO)],
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
            <span class="today-change-subject" dir="auto">
              <Text>{one.subject ?? one.why ?? ""}</Text>
            </span>
            <Time at={one.at} />
          </li>
        ))}
      </ul>
    </section>
  );
}
