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
        height={36}
        onRange={lines.want}
        groupOf={(line) => (lately(line) ? dayHeading(lately(line)) : t.value.noDate)}
        render={(line) => <Row line={line} />}
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

/** A session in one line. */
function Row({ line }: { line: SessionLine }) {
  const { session, opening, active } = line;
  const at = lately(line);
  const facts = [session.session.tool, session.session.branch, t.value.turns(session.turns), spent(active)];
  return (
    <a class="row sessions-row" href={to(session.session)}>
      <span class="faint">{at && clock(at)}</span>
      <span class="clip" dir="auto">
        <Text>{nameOf(session.session, opening)}</Text>
      </span>
      <span class="faint sessions-facts">
        <Text>{facts.filter(Boolean).join(" · ")}</Text>
      </span>
      <span class="clip sessions-project">
        <Text>{session.project ?? ""}</Text>
      </span>
    </a>
  );
}

/** Return the time of the last activity, used for sorting. */
function lately({ session }: SessionLine): string {
  return session.ended ?? session.session.started ?? "";
}
