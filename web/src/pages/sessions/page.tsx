import { useOperation } from "../../api/cache";
import { usePaged } from "../../api/paged";
import type { SessionLine } from "../../api/types";
import { titles } from "../../app/pages";
import { Page } from "../../ui/layout";
import { List } from "../../ui/list";
import { Empty, Failure, Skeleton } from "../../ui/states";
import { Text } from "../../ui/text";
import { dayHeading } from "../../ui/time";
import { clock, nameOf, spent, to } from "../session/figures";
import { Bar } from "./bar";
import { clear, type Filters, filters, isNarrowed, range } from "./filters";
import { Found } from "./found";
import { t } from "./strings";
import "./page.css";

export default function Sessions() {
  const at = filters.value;
  return (
    <Page title={titles.value.sessions} note={t.value.note}>
      <Bar at={at} />
      {at.words.trim() ? <Found at={at} /> : <Timeline at={at} />}
    </Page>
  );
}

function Timeline({ at }: { at: Filters }) {
  const { since, until } = range(at);
  const lines = usePaged(
    "sessions",
    { filter: { tool: at.tool || null, project: at.project || null, since, until } },
    { rows: (page) => page.lines, total: (page) => page.total, on: ["session"] },
  );
  if (lines.first) return <Skeleton lines={12} />;
  if (lines.problem && !lines.rows.length) return <Failure problem={lines.problem} retry={lines.refresh} />;
  if (!lines.rows.length) return isNarrowed(at) ? <None /> : <Nothing />;
  return (
    <>
      <p class="sessions-found" role="status">
        {t.value.found(lines.rows.length)}
      </p>
      <List
        label={titles.value.sessions}
        items={lines.rows}
        keyOf={(line) => String(line.session.row)}
        height={56}
        onRange={lines.want}
        render={(line, _, index) => <Row line={line} before={lines.rows[index - 1]} isFirst={index === 0} />}
      />
    </>
  );
}

function None() {
  return (
    <Empty title={t.value.none}>
      <button type="button" class="button plain" onClick={clear}>
        {t.value.clear}
      </button>
    </Empty>
  );
}

/** No session was read yet: the folders that nacre searches. */
function Nothing() {
  const plan = useOperation("ingest-plan", {}, { on: [] });
  const files = plan.data?.files ?? 0;
  return <Empty title={t.value.empty}>{files ? t.value.emptyRead(files) : t.value.emptyNote}</Empty>;
}

/** A session, with the day's heading if it is the first of the day. */
function Row(props: { line: SessionLine; before: SessionLine | undefined; isFirst: boolean }) {
  const { session, opening, active } = props.line;
  const day = lately(props.line);
  const isNewDay = props.isFirst || (props.before && dayOf(lately(props.before)) !== dayOf(day));
  const facts = [session.session.tool, session.session.branch, t.value.turns(session.turns), spent(active)];
  return (
    <>
      {isNewDay && <h2 class="sessions-day">{day ? dayHeading(day) : t.value.noDate}</h2>}
      <a class="sessions-row" href={to(session.session)}>
        <span class="sessions-clock">{day && clock(day)}</span>
        <span class="sessions-title" dir="auto">
          <Text>{nameOf(session.session, opening)}</Text>
        </span>
        <span class="sessions-project">
          <Text>{session.project ?? ""}</Text>
        </span>
        <span class="sessions-facts">
          <Text>{facts.filter(Boolean).join(" · ")}</Text>
        </span>
      </a>
    </>
  );
}

/** Return the time of the last activity, used for sorting. */
function lately({ session }: SessionLine): string {
  return session.ended ?? session.session.started ?? "";
}

function dayOf(at: string): string {
  return at && new Date(at).toDateString();
}
