import { useEffect, useRef } from "preact/hooks";
import { type Loaded, useOperation } from "../../api/cache";
import { call } from "../../api/client";
import { type Paged, usePaged } from "../../api/paged";
import type { Memory, SessionView, StoredTurn } from "../../api/types";
import { useShortcuts } from "../../app/keys";
import { type PageProps, titles } from "../../app/pages";
import { query } from "../../app/router";
import { said } from "../../i18n/said";
import { Button } from "../../ui/controls";
import { Page } from "../../ui/layout";
import { List } from "../../ui/list";
import { copyCommand } from "../../ui/resume";
import { Empty, Failure, Show, Skeleton } from "../../ui/states";
import { Text } from "../../ui/text";
import { day } from "../../ui/time";
import { attempt, toast } from "../../ui/toast";
import { Aside } from "./aside";
import { headingOf, idOf } from "./figures";
import { asMarkdown } from "./markdown";
import { t } from "./strings";
import { Said, SIDECHAIN } from "./turn";
import "./page.css";

/** Rows above and below the requested turn. */
const AROUND = 20;

export default function One({ params }: PageProps) {
  const reference = params.id ?? "";
  const view = useOperation("session", { reference, limit: 0 }, { on: ["session", "memory"] });
  if (!view.data) {
    return (
      <Page title={titles.value.sessions}>
        <Show of={view}>{() => null}</Show>
      </Page>
    );
  }
  return <Whole key={reference} view={view.data} />;
}

function Whole({ view }: { view: SessionView }) {
  const { session } = view;
  const reference = idOf(session.session);
  useShortcuts(titles.value.sessions, [{ keys: "c", says: t.value.copy, run: () => copyTalk(reference) }]);
  return (
    <Page
      wide
      title={headingOf(session.session, view.opening)}
      note={<Line view={view} />}
      actions={
        <>
          {session.session.tool === "nacre-chat" ? (
            <a class="button plain" href={`/chats/${session.session.native_id}`}>
              {t.value.chat}
            </a>
          ) : (
            <Button onClick={() => copyCommand(reference)}>{t.value.resume}</Button>
          )}
          <Button shortcut="c" onClick={() => copyTalk(reference)}>
            {t.value.copy}
          </Button>
        </>
      }
    >
      <div class="session">
        <Talk view={view} reference={reference} />
        <Aside view={view} />
      </div>
    </Page>
  );
}

function Line({ view: { session } }: { view: SessionView }) {
  const { tool, branch, started } = session.session;
  return (
    <span class="line">
      <Text>{tool}</Text>
      {session.project && (
        <a class="link" href={`/projects/${encodeURIComponent(session.project)}`}>
          <Text>{session.project}</Text>
        </a>
      )}
      {branch && <Text>{branch}</Text>}
      {started && <time dateTime={started}>{day(started)}</time>}
      <span>{t.value.turns(session.turns)}</span>
    </span>
  );
}

function Talk({ view, reference }: { view: SessionView; reference: string }) {
  const turns = usePaged(
    "session",
    { reference },
    {
      rows: (part) => part.turns,
      total: (part) => part.session.turns,
      on: ["session"],
      ask: (first, limit) => ({ first, limit }),
    },
  );
  const wanted = query.value.get("turn");
  const place = usePlace(reference, wanted, turns);
  const unfolded = useRef(new Set<string>());
  if (turns.first) return <Skeleton lines={14} />;
  if (turns.problem && !turns.rows.length) return <Failure problem={turns.problem} retry={turns.refresh} />;
  if (!turns.rows.length) return <Empty title={t.value.empty}>{t.value.emptyNote}</Empty>;
  const shown = shownBy(view.memories);
  return (
    <div class="session-talk">
      {place.problem && (
        <p class="session-lost" role="alert">
          {said(place.problem.message)}
        </p>
      )}
      <List
        label={t.value.talk}
        items={turns.rows}
        keyOf={({ turn }) => turn.id}
        height={84}
        at={place.at}
        onRange={turns.want}
        render={({ turn }, _, index) => (
          <Said
            turn={turn}
            learned={shown.get(turn.id) ?? []}
            unfolded={unfolded.current}
            isNamed={turn.id === wanted}
            isWithin={isWithin(turns.rows[index - 1])}
          />
        )}
      />
    </div>
  );
}

/** Return the position of the requested turn once it and its neighbours are loaded. */
function usePlace(reference: string, turn: string | null, turns: Paged<StoredTurn>) {
  const found: Loaded<SessionView> = useOperation(
    "session",
    { reference, around: turn, limit: 1 },
    { on: [], off: !turn },
  );
  const at = turn ? found.data?.turns[0]?.seq : undefined;
  useEffect(() => {
    if (at !== undefined && !turns.first) turns.want(Math.max(0, at - AROUND), at + AROUND);
  }, [at, turns.first]);
  const isKnown = at !== undefined && turns.rows[at] !== undefined;
  return { at: isKnown ? at : undefined, problem: turn ? found.problem : undefined };
}

function isWithin(before: StoredTurn | undefined): boolean {
  return before !== undefined && (before.turn.flags & SIDECHAIN) > 0;
}

/** Return the memories of each turn. */
function shownBy(memories: readonly Memory[]): Map<string, Memory[]> {
  const shown = new Map<string, Memory[]>();
  for (const memory of memories) {
    for (const turn of memory.source.turns ?? []) shown.set(turn, [...(shown.get(turn) ?? []), memory]);
  }
  return shown;
}

function copyTalk(reference: string): void {
  attempt(async () => {
    const view = await call("session", { reference, limit: null });
    await navigator.clipboard.writeText(asMarkdown(view));
    toast(t.value.copied(view.turns.length));
  });
}
