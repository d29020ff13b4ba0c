import { useOperation } from "../../api/cache";
import type { ResultOf } from "../../api/client";
import { titles } from "../../app/pages";
import { query, setQuery } from "../../app/router";
import { language } from "../../i18n/index";
import { Calendar } from "../../ui/charts";
import { Segments } from "../../ui/controls";
import { Page, Section } from "../../ui/layout";
import { MemoryRow } from "../../ui/memory-row";
import { Empty, Show, Skeleton } from "../../ui/states";
import { dayBefore } from "../../ui/time";
import { Aside } from "./aside";
import { LATEST, Sessions } from "./sessions";
import { t } from "./strings";
import { Waits } from "./waits";
import "./page.css";

export type Today = ResultOf<"today">;

const PERIODS = ["1", "7", "30"] as const;
type Period = (typeof PERIODS)[number];
const MOST = 8;

export default function TodayPage() {
  const asked = query.value.get("days") as Period | null;
  const picked = asked && PERIODS.includes(asked) ? asked : null;
  const first = useOperation("today", { since: dayBefore(Number(picked ?? 1) - 1), limit: MOST });
  useOperation("sessions", LATEST, { on: ["session"] }); // immediately, not after the first answer
  const isQuiet = !picked && first.data?.learned.length === 0 && !first.data.sessions.length;
  const week = useOperation("today", { since: dayBefore(6), limit: MOST }, { off: !isQuiet });
  const days = picked ?? (isQuiet ? "7" : "1");
  const period = (
    <Segments
      label={t.value.period}
      value={days}
      options={PERIODS.map((one) => [one, t.value.days[one] ?? one] as const)}
      onPick={(days) => setQuery({ days })}
    />
  );
  return (
    <Page
      wide
      title={titles.value.today}
      note={isQuiet ? `${dateInWords()} · ${t.value.quiet}` : dateInWords()}
      actions={period}
    >
      <Show of={isQuiet && week.data ? week : first} lines={9}>
        {(today) => (
          <>
            <Waits today={today} />
            <div class="today with-aside">
              <div>
                <Sessions today={today} />
                {isQuiet && !week.data && week.loading ? <Skeleton lines={MOST} /> : <Learned today={today} />}
              </div>
              <Aside today={today} />
            </div>
            <Year />
          </>
        )}
      </Show>
    </Page>
  );
}

function Learned({ today }: { today: Today }) {
  const isQuiet = today.learned.length === 0;
  const earlier = useOperation("list", { limit: MOST }, { off: !isQuiet }).data;
  const shown = isQuiet ? (earlier?.memories ?? []) : today.learned;
  const more = today.learned_total > today.learned.length && (
    <a class="link" href="/memories">
      {t.value.all(today.learned_total)}
    </a>
  );
  const sources = today.sources.map(({ speaker, tool, memories }) =>
    t.value.from(tool ?? t.value.speakers[speaker] ?? speaker, memories),
  );
  const note = isQuiet && shown.length ? t.value.earlier : sources.join(" · ");
  return (
    <Section title={t.value.learned} note={note} actions={more}>
      {isQuiet && earlier?.memories.length === 0 && <Empty title={t.value.nothing}>{t.value.nothingNote}</Empty>}
      <ul>
        {shown.map((one) => (
          <li key={one.id}>
            <MemoryRow memory={one} />
          </li>
        ))}
      </ul>
    </Section>
  );
}

/** The turns of each day of a year. */
function Year() {
  const year = useOperation("activity", {}, { on: ["session"] }).data;
  if (!year?.calendar.length) return null;
  return (
    <Calendar
      title={t.value.calendar}
      axis={t.value.day}
      unit={t.value.unit}
      until={year.until}
      days={new Map(year.calendar.map(({ day, turns }) => [day, turns]))}
    />
  );
}

function dateInWords(): string {
  return new Intl.DateTimeFormat(language.value, { weekday: "long", day: "numeric", month: "long" }).format();
}
