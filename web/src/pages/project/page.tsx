import { useSignal } from "@preact/signals";
import { useOperation } from "../../api/cache";
import { me } from "../../api/me";
import type { Kind, ProjectDetail } from "../../api/types";
import { type PageProps, titles } from "../../app/pages";
import { number } from "../../i18n/index";
import { Calendar } from "../../ui/charts";
import { Button } from "../../ui/controls";
import { plain } from "../../ui/hidden";
import { KindName } from "../../ui/kind";
import { Page, Section } from "../../ui/layout";
import { MemoryRow } from "../../ui/memory-row";
import { OwnPageSection } from "../../ui/own-page";
import { Show } from "../../ui/states";
import { Text } from "../../ui/text";
import { Time } from "../../ui/time";
import { nameOf, to } from "../session/figures";
import { Aside } from "./aside";
import { Merge, Rename } from "./moving";
import { t } from "./strings";
import "./page.css";

const LATEST = 6;

export default function One({ params }: PageProps) {
  const detail = useOperation("project-show", { project: params.name ?? "" });
  if (!detail.data) {
    return (
      <Page title={titles.value.projects}>
        <Show of={detail}>{() => null}</Show>
      </Page>
    );
  }
  return <Whole key={detail.data.project.slug} detail={detail.data} />;
}

function Whole({ detail }: { detail: ProjectDetail }) {
  const { slug, name } = detail.project;
  const asked = useSignal<"" | "rename" | "merge">("");
  const close = () => (asked.value = "");
  return (
    <Page
      wide
      title={plain(slug)}
      note={plain(name) !== plain(slug) && <Text>{name}</Text>}
      actions={
        me.value?.owner && (
          <>
            <Button onClick={() => (asked.value = "rename")}>{t.value.rename}</Button>
            <Button onClick={() => (asked.value = "merge")}>{t.value.merge}</Button>
          </>
        )
      }
    >
      <div class="project">
        <div class="project-main">
          <OwnPageSection of={{ name: "project", project: slug }} title={t.value.page} purpose={t.value.purpose} />
          <Memories detail={detail} />
          <Sessions detail={detail} />
        </div>
        <Aside detail={detail} />
      </div>
      {asked.value === "rename" && <Rename project={detail.project} onClose={close} />}
      {asked.value === "merge" && <Merge project={detail.project} onClose={close} />}
    </Page>
  );
}

function Memories({ detail }: { detail: ProjectDetail }) {
  const { slug, memories } = detail.project;
  const activity = useOperation("activity", { project: slug }, { on: ["memory", "session"] });
  const held = (activity.data?.held ?? []).map(({ name, values }) => [name as Kind, values.at(-1) ?? 0] as const);
  const some = held.filter(([, held]) => held > 0).toSorted(([, a], [, b]) => b - a);
  const here = `/memories?project=${encodeURIComponent(slug)}`;
  return (
    <Section
      title={t.value.memories}
      note={number(memories)}
      actions={
        memories > 0 && (
          <a class="link project-all" href={here}>
            {t.value.allMemories}
          </a>
        )
      }
    >
      {some.length > 0 && (
        <ul class="project-kinds">
          {some.map(([kind, held]) => (
            <li key={kind}>
              <a href={`${here}&kind=${kind}`}>
                <KindName kind={kind} /> <b>{number(held)}</b>
              </a>
            </li>
          ))}
        </ul>
      )}
      {!detail.latest.length && <p class="project-none">{t.value.noMemories}</p>}
      <ul>
        {detail.latest.slice(0, LATEST).map((memory) => (
          <li key={memory.id}>
            <MemoryRow memory={{ ...memory, project: null }} />
          </li>
        ))}
      </ul>
    </Section>
  );
}

function Sessions({ detail }: { detail: ProjectDetail }) {
  const { slug, sessions } = detail.project;
  const page = useOperation("sessions", { filter: { project: slug }, limit: LATEST }, { on: ["session"] });
  const activity = useOperation("activity", { project: slug }, { on: ["memory", "session"] });
  return (
    <Section
      title={t.value.sessions}
      note={number(sessions)}
      actions={
        sessions > 0 && (
          <a class="link project-all" href={`/sessions?project=${encodeURIComponent(slug)}`}>
            {t.value.allSessions}
          </a>
        )
      }
    >
      <Show of={page}>
        {({ lines }) => (
          <>
            {!lines.length && <p class="project-none">{t.value.noSessions}</p>}
            <ul class="project-sessions">
              {lines.map(({ session, opening }) => (
                <li key={session.row}>
                  <a href={to(session.session)}>
                    <span class="project-title" dir="auto">
                      <Text>{nameOf(session.session, opening)}</Text>
                    </span>
                    <span class="project-faint">{session.session.tool}</span>
                    <span class="project-faint">{session.ended && <Time at={session.ended} />}</span>
                  </a>
                </li>
              ))}
            </ul>
          </>
        )}
      </Show>
      {sessions > 0 && activity.data && (
        <Calendar
          title={t.value.calendar}
          axis={t.value.day}
          unit={t.value.unit}
          until={activity.data.until}
          days={new Map(activity.data.calendar.map((one) => [one.day, one.turns]))}
        />
      )}
    </Section>
  );
}
