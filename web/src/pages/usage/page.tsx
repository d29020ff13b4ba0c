import { useOperation } from "../../api/cache";
import type { Activity, Kind, Series } from "../../api/types";
import { titles } from "../../app/pages";
import { query, setQuery } from "../../app/router";
import { common } from "../../i18n/common";
import { number } from "../../i18n/index";
import { BarChart } from "../../ui/charts";
import { Segments, Select } from "../../ui/controls";
import { colourOf } from "../../ui/kind";
import { Page, Section } from "../../ui/layout";
import { Show } from "../../ui/states";
import { dayBefore } from "../../ui/time";
import { money } from "./money";
import { Nothing } from "./nothing";
import { Now } from "./now";
import { t } from "./strings";
import { Useful } from "./useful";
import "./page.css";

const DAYS: Record<string, number> = { "30": 30, "90": 90, year: 365 };
const TASKS = ["--lesson", "--decision", "--preference", "--fact", "--todo", "--relationship", "--event", "--other"];
const MICRO = 1e6;

export default function Usage() {
  const asked = query.value.get("period") ?? "90";
  const period = asked in DAYS ? asked : "90";
  const project = query.value.get("project") ?? "";
  const since = dayBefore((DAYS[period] ?? 90) - 1);
  const found = useOperation("activity", { since, project: project || null }, { keep: true });
  return (
    <Page
      wide
      title={titles.value.usage}
      actions={
        <>
          <ProjectPick project={project} />
          <Segments
            label={t.value.period}
            value={period}
            options={Object.keys(DAYS)
              .toSorted()
              .map((one) => [one, t.value.periods[one] ?? one] as const)}
            onPick={(picked) => setQuery({ period: picked === "90" ? null : picked })}
          />
        </>
      }
    >
      {!project && <Now />}
      <Show of={found} lines={12}>
        {(activity) => (
          <>
            {!project && <Money of={activity} />}
            <Recall of={activity} />
            <Growth of={activity} />
          </>
        )}
      </Show>
      {!project && <Useful />}
    </Page>
  );
}

function ProjectPick({ project }: { project: string }) {
  const projects = useOperation("project-list", {});
  const names = (projects.data ?? []).map((one) => one.slug);
  return (
    <Select
      bare
      label={t.value.project}
      value={project}
      options={[["", t.value.allProjects], ...names.map((one) => [one, one] as const)]}
      onPick={(picked) => setQuery({ project: picked })}
    />
  );
}

function Money({ of }: { of: Activity }) {
  const axis = axisOf(of);
  const isNothing = !of.tokens.some(hasAny) && !of.cost.some(hasAny);
  return (
    <Section title={t.value.money}>
      {isNothing ? (
        <Nothing title={t.value.noModel} note={t.value.noModelNote} />
      ) : (
        <div class="usage-pictures">
          <BarChart title={t.value.tokens} axis={axis} labels={of.steps} series={coloured(of.tokens)} format={short} />
          <BarChart
            title={t.value.cost}
            axis={axis}
            labels={of.steps}
            series={coloured(of.cost).map((one) => ({ ...one, values: one.values.map((value) => value / MICRO) }))}
            format={money}
          />
        </div>
      )}
    </Section>
  );
}

function Recall({ of }: { of: Activity }) {
  const axis = axisOf(of);
  const words = { answered: t.value.answered, unanswered: t.value.unanswered } as Record<string, string>;
  const colours = { answered: "var(--todo)", unanswered: "var(--event)" } as Record<string, string>;
  const isNothing = !of.recalls.some(Boolean) && !of.questions.some(hasAny);
  const asked = !of.project && (
    <BarChart
      title={t.value.questions}
      axis={axis}
      labels={of.steps}
      series={of.questions.map((one) => ({
        name: words[one.name] ?? one.name,
        colour: colours[one.name] ?? "var(--other)",
        values: one.values,
      }))}
    />
  );
  return (
    <Section title={t.value.recall}>
      {isNothing ? (
        <Nothing title={t.value.noRecall} note={t.value.noRecallNote} />
      ) : (
        <div class="usage-pictures">
          <BarChart
            title={t.value.recalls}
            axis={axis}
            labels={of.steps}
            series={[{ name: t.value.recalled, colour: "var(--decision)", values: of.recalls }]}
          />
          {asked}
        </div>
      )}
    </Section>
  );
}

function Growth({ of }: { of: Activity }) {
  const axis = axisOf(of);
  return (
    <>
      <Section title={t.value.growth}>
        <div class="usage-pictures">
          <BarChart title={t.value.stored} axis={axis} labels={of.steps} series={of.stored.map(byKind)} />
          <BarChart title={t.value.held} axis={axis} labels={of.steps} series={of.held.map(byKind)} />
        </div>
      </Section>
      <Section title={t.value.freshness} note={t.value.staleNote}>
        <div class="usage-pictures">
          <BarChart
            title={t.value.age}
            axis={t.value.ageAxis}
            labels={of.ages.map((one) => t.value.days(one.least, one.most))}
            series={[
              { name: t.value.fresh, colour: "var(--lesson)", values: of.ages.map((one) => one.memories - one.stale) },
              { name: t.value.stale, colour: "var(--preference)", values: of.ages.map((one) => one.stale) },
            ]}
          />
          <BarChart
            title={t.value.often}
            axis={t.value.oftenAxis}
            labels={t.value.times}
            series={[{ name: t.value.memories, colour: "var(--fact)", values: [of.never, of.seldom, of.often] }]}
          />
        </div>
      </Section>
    </>
  );
}

function byKind({ name, values }: Series) {
  return { name: common.value.kinds[name as Kind] ?? name, colour: colourOf(name as Kind), values };
}

function coloured(series: readonly Series[]) {
  return series.map((one, index) => ({ ...one, colour: `var(${TASKS[Math.min(index, TASKS.length - 1)]})` }));
}

function hasAny({ values }: Series): boolean {
  return values.some(Boolean);
}

function axisOf({ step }: Activity): string {
  return step === "day" ? t.value.day : step === "week" ? t.value.week : t.value.month;
}

function short(value: number): string {
  return number(value, { notation: "compact", maximumSignificantDigits: 3 });
}
