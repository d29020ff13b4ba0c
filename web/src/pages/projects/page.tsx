import { useOperation } from "../../api/cache";
import type { ProjectLine } from "../../api/types";
import { titles } from "../../app/pages";
import { number } from "../../i18n/index";
import { Page } from "../../ui/layout";
import { List } from "../../ui/list";
import { Empty, Show } from "../../ui/states";
import { Text } from "../../ui/text";
import { dayBefore, Time } from "../../ui/time";
import { t } from "./strings";
import "./page.css";

const WEEKS = 12;
const DAY_MS = 86_400_000;

export default function Projects() {
  const projects = useOperation("project-list", {}, { on: ["memory", "session", "operation"] });
  return (
    <Page title={titles.value.projects} note={t.value.note}>
      <Show of={projects} lines={10}>
        {(found) => <All found={found} />}
      </Show>
    </Page>
  );
}

function All({ found }: { found: readonly ProjectLine[] }) {
  if (!found.length) return <Empty title={t.value.empty}>{t.value.emptyNote}</Empty>;
  const lines = found.toSorted((a, b) => (b.last ?? "").localeCompare(a.last ?? ""));
  return (
    <>
      <p class="projects-head" aria-hidden="true">
        <span>{t.value.count(lines.length)}</span>
        <span class="projects-weeks">{t.value.weeks}</span>
        <span>{t.value.memories}</span>
        <span>{t.value.sessions}</span>
        <span>{t.value.last}</span>
      </p>
      <List
        label={titles.value.projects}
        items={lines}
        keyOf={(one) => one.slug}
        height={52}
        render={(one) => <Row project={one} />}
      />
    </>
  );
}

function Row({ project }: { project: ProjectLine }) {
  const more = [
    project.name !== project.slug && project.name,
    project.aliases.length > 0 && t.value.aliases(project.aliases.join(", ")),
    project.dependencies.length > 0 && t.value.dependsOn(project.dependencies.join(", ")),
  ].filter(Boolean);
  return (
    <a class="row projects-row" href={`/projects/${encodeURIComponent(project.slug)}`}>
      <span class="projects-name">
        <Text>{project.slug}</Text>
        {more.length > 0 && (
          <small class="clip">
            <Text>{more.join(" · ")}</Text>
          </small>
        )}
      </span>
      <Weeks project={project.slug} />
      <span class="projects-number">
        {number(project.memories)}
        <span class="projects-unit"> {t.value.memories}</span>
      </span>
      <span class="projects-number">
        {number(project.sessions)}
        <span class="projects-unit"> {t.value.sessions}</span>
      </span>
      <span class="projects-last">{project.last && <Time at={project.last} />}</span>
    </a>
  );
}

/** Turns of its sessions by week, the latest on the right. */
function Weeks({ project }: { project: string }) {
  const since = dayBefore(WEEKS * 7 - 1);
  const { data } = useOperation("activity", { project, since }, { on: ["session"] });
  const weeks = new Array<number>(WEEKS).fill(0);
  for (const { day, turns } of data?.calendar ?? []) {
    const week = Math.floor((Date.parse(day) - Date.parse(since)) / (7 * DAY_MS));
    if (week >= 0 && week < WEEKS) weeks[week] = (weeks[week] ?? 0) + turns;
  }
  const most = Math.max(...weeks, 1);
  return (
    <svg class="projects-weeks" width={WEEKS * 7} height="24" role="img" aria-label={t.value.turns(sum(weeks), WEEKS)}>
      {weeks.map((turns, week) => {
        const height = turns ? Math.max(3, (turns / most) * 24) : 1;
        const tone = turns ? "some" : "none";
        return <rect key={week} class={tone} x={week * 7} y={24 - height} width="5" height={height} rx="1" />;
      })}
    </svg>
  );
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((one, other) => one + other, 0);
}
