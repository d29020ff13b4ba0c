import { useOperation } from "../../api/cache";
import type { ResultOf } from "../../api/client";
import { titles } from "../../app/pages";
import { query, setQuery } from "../../app/router";
import { language } from "../../i18n/index";
import { Segments } from "../../ui/controls";
import { Page, Section } from "../../ui/layout";
import { MemoryRow } from "../../ui/memory-row";
import { Empty, Show } from "../../ui/states";
import { dayBefore } from "../../ui/time";
import { Aside } from "./aside";
import { Lately } from "./lately";
import { t } from "./strings";
import { Waits } from "./waits";
import "./page.css";

export type Today = ResultOf<"today">;

const PERIODS = ["1", "7", "30"] as const;
type Period = (typeof PERIODS)[number];
const MOST = 8;

export default function TodayPage() {
  const asked = query.value.get("days") as Period | null;
  const days = asked && PERIODS.includes(asked) ? asked : "1";
  const found = useOperation("today", { since: dayBefore(Number(days) - 1), limit: MOST });
  const period = (
    <Segments
      label={t.value.period}
      value={days}
      options={PERIODS.map((one) => [one, t.value.days[one] ?? one] as const)}
      onPick={(picked) => setQuery({ days: picked === "1" ? null : picked })}
    />
  );
  return (
    <Page wide title={titles.value.today} note={dateInWords()} actions={period}>
      <Show of={found} lines={9}>
        {(today) => (
          <>
            <Waits today={today} />
            <div class="today">
              <div>
                <Learned today={today} />
                <Lately />
              </div>
              <Aside today={today} />
            </div>
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
    <a class="link today-more" href="/memories">
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

function dateInWords(): string {
  return new Intl.DateTimeFormat(language.value, { weekday: "long", day: "numeric", month: "long" }).format();
}
