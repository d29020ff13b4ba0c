import { useOperation } from "../../api/cache";
import type { Kind, Series } from "../../api/types";
import { common } from "../../i18n/common";
import { BarChart, Calendar } from "../../ui/charts";
import { colourOf } from "../../ui/kind";
import { Section } from "../../ui/layout";
import { Show } from "../../ui/states";
import { dayBefore } from "../../ui/time";
import { t } from "./strings";

const DAYS = 84;
const TOOLS = ["--lesson", "--decision", "--preference", "--fact", "--todo", "--relationship", "--event"];

/** Charts of three months, and a calendar of a year. */
export function Lately() {
  const since = dayBefore(DAYS - 1);
  const recent = useOperation("activity", { since });
  const year = useOperation("activity", {});
  return (
    <Section title={t.value.lately}>
      <Show of={recent} lines={6}>
        {(data) => (
          <div class="today-pictures">
            <BarChart
              title={t.value.growth}
              axis={t.value.day}
              labels={data.steps}
              series={data.held.map((one) => ({
                name: common.value.kinds[one.name as Kind] ?? one.name,
                colour: colourOf(one.name as Kind),
                values: one.values,
              }))}
            />
            <BarChart
              title={t.value.activity}
              axis={t.value.day}
              labels={data.steps}
              series={coloured(data.sessions)}
            />
          </div>
        )}
      </Show>
      <Show of={year} lines={6}>
        {(data) => (
          <Calendar
            title={t.value.calendar}
            axis={t.value.day}
            unit={t.value.unit}
            until={data.until}
            days={new Map(data.calendar.map((one) => [one.day, one.turns]))}
          />
        )}
      </Show>
    </Section>
  );
}

function coloured(series: readonly Series[]) {
  return series.map((one, index) => ({ ...one, colour: `var(${TOOLS[index % TOOLS.length]})` }));
}
