import { useSignal } from "@preact/signals";
import { useRef } from "preact/hooks";
import { useOperation } from "../../api/cache";
import type { RequestOf } from "../../api/client";
import type { ProjectLine } from "../../api/types";
import { titles } from "../../app/pages";
import { go, query, setQuery } from "../../app/router";
import { useWidth } from "../../ui/charts";
import { Button, Segments, Select } from "../../ui/controls";
import { Conversation } from "../../ui/conversation";
import { Dialog } from "../../ui/dialog";
import { plain } from "../../ui/hidden";
import { Page } from "../../ui/layout";
import { MemoryFacts } from "../../ui/memory-facts";
import { Empty, Show } from "../../ui/states";
import { Text } from "../../ui/text";
import { day } from "../../ui/time";
import { attempt } from "../../ui/toast";
import { Picture, period } from "./picture";
import { decisionsOf, type Point, sessionsOf } from "./points";
import { savePicture } from "./save";
import { t } from "./strings";
import "./page.css";

const DAY_MS = 86_400_000;
const SPANS = { week: 7, month: 30, all: 0 } as const;
const MOST = 200;

type Zoom = keyof typeof SPANS;

export default function Timeline() {
  const projects = useOperation("project-list", {}, { on: ["session"] });
  const asked = query.value.get("project") ?? "";
  useOperation("beliefs", decisionsIn(asked), { off: !asked }); // read at once, not after the list of projects
  const listed = projects.data?.find(({ slug }) => slug === asked) ?? projects.data?.[0];
  if (listed) return <Of key={listed.slug} project={listed} projects={projects.data ?? []} />;
  return (
    <Page title={titles.value.timeline} note={t.value.note}>
      <Show of={projects}>{() => <Empty title={t.value.empty}>{t.value.emptyNote}</Empty>}</Show>
    </Page>
  );
}

function decisionsIn(project: string): RequestOf<"beliefs"> {
  return { project, kinds: ["decision"], replaced: true, limit: MOST };
}

function Of({ project: { slug, last }, projects }: { project: ProjectLine; projects: readonly ProjectLine[] }) {
  const asked = (query.value.get("zoom") ?? "all") as Zoom;
  const zoom = asked in SPANS ? asked : "all";
  const isTable = useSignal(false);
  const opened = useSignal<Point | null>(null);
  const picture = useRef<SVGSVGElement>(null);
  const place = useRef<HTMLDivElement>(null);
  const width = useWidth(place);
  const back = Number(query.value.get("back")) || 0;
  const span = SPANS[zoom] * DAY_MS;
  const end = Math.ceil((Date.parse(last ?? "") || Date.now()) / DAY_MS + 0.01) * DAY_MS - back * span;
  const dates = span && { since: new Date(end - span).toISOString(), until: new Date(end).toISOString() };
  const sessions = useOperation("sessions", { filter: { project: slug, ...dates }, limit: MOST }, { keep: true });
  const beliefs = useOperation("beliefs", decisionsIn(slug), { keep: true });
  const every = [sessionsOf(sessions.data?.lines ?? []), decisionsOf(beliefs.data?.beliefs ?? [])];
  const isCut = Math.max(sessions.data?.total ?? 0, beliefs.data?.total ?? 0) > MOST;
  // Earlier points of one lane without those of the other would mislead.
  const least = span ? end - span : Math.max(...every.map((lane) => (lane.length >= MOST ? (lane[0]?.at ?? 0) : 0)));
  const [told = [], decided = []] = every.map((lane) => lane.filter(({ at }) => at >= least && at <= end));
  const first = Math.min(...[...told, ...decided].map(({ at }) => at), end - DAY_MS);
  const from = span ? end - span : first;
  const step = (by: number) => setQuery({ back: String(Math.max(0, back + by)) });
  const open = (point: Point) => {
    if (point.memory) opened.value = point;
    else go(point.href);
  };
  return (
    <Page
      wide
      title={titles.value.timeline}
      note={t.value.note}
      actions={
        <>
          <Select
            bare
            label={t.value.project}
            value={slug}
            options={projects.map((one) => [one.slug, one.slug] as const)}
            onPick={(project) => setQuery({ project, back: null })}
          />
          <Segments
            label={t.value.zoom}
            value={zoom}
            options={(Object.keys(SPANS) as Zoom[]).map((one) => [one, t.value.zooms[one]] as const)}
            onPick={(picked) => setQuery({ zoom: picked === "all" ? null : picked, back: null })}
          />
          <Segments
            label={t.value.look}
            value={isTable.value ? "table" : "picture"}
            options={(["picture", "table"] as const).map((one) => [one, t.value.looks[one]] as const)}
            onPick={(picked) => (isTable.value = picked === "table")}
          />
        </>
      }
    >
      <div ref={place}>
        <Show<unknown> of={sessions.data ? beliefs : sessions} lines={12}>
          {() =>
            isTable.value ? (
              <Rows points={[...decided, ...told]} onOpen={open} />
            ) : (
              <Picture
                {...{ project: slug, from, to: end, width, picture, onOpen: open }}
                decisions={decided}
                sessions={told}
              />
            )
          }
        </Show>
      </div>
      <div class="timeline-below">
        {span > 0 && (
          <>
            <Button onClick={() => step(1)}>{t.value.earlier}</Button>
            <Button disabled={!back} onClick={() => step(-1)}>
              {t.value.later}
            </Button>
          </>
        )}
        {told.length + decided.length === 0 && sessions.data && <span>{t.value.quiet}</span>}
        {isCut && !span && <span>{t.value.latest}</span>}
        {!isTable.value && (
          <Button
            onClick={() =>
              attempt(() => picture.current && savePicture(picture.current, `${plain(slug)} ${period(from, end)}`))
            }
          >
            {t.value.save}
          </Button>
        )}
      </div>
      {opened.value?.memory && (
        <Dialog title={plain(opened.value.words)} place="side" onClose={() => (opened.value = null)}>
          <MemoryFacts memory={opened.value.memory} />
          <p dir="auto">
            <Text>{opened.value.memory.content}</Text>
          </p>
          <Conversation memory={opened.value.memory} />
          <a class="link" href={opened.value.href}>
            {t.value.open}
          </a>
        </Dialog>
      )}
    </Page>
  );
}

function Rows({ points, onOpen }: { points: readonly Point[]; onOpen: (point: Point) => void }) {
  return (
    <table class="timeline-table">
      <thead>
        <tr>
          <th scope="col">{t.value.date}</th>
          <th scope="col">{t.value.kind}</th>
          <th scope="col">{t.value.words}</th>
        </tr>
      </thead>
      <tbody>
        {points
          .toSorted((one, other) => other.at - one.at)
          .map((point) => (
            <tr key={`${point.kind}${point.key}`}>
              <td>{day(new Date(point.at).toISOString())}</td>
              <td>{t.value[point.kind]}</td>
              <td dir="auto">
                <button type="button" onClick={() => onOpen(point)}>
                  <Text>{point.words}</Text>
                </button>
                {point.replaces?.map((old) => (
                  <small key={old.key}>
                    {" "}
                    <Text>{t.value.replaces(old.words)}</Text>
                  </small>
                ))}
              </td>
            </tr>
          ))}
      </tbody>
    </table>
  );
}
