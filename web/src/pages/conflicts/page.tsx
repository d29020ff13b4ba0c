import { useSignal } from "@preact/signals";
import { useRef } from "preact/hooks";
import { change, useOperation } from "../../api/cache";
import { call } from "../../api/client";
import { me } from "../../api/me";
import type { Choice, Evidence, Memory, Pair } from "../../api/types";
import { useShortcuts } from "../../app/keys";
import { titles } from "../../app/pages";
import { number } from "../../i18n/index";
import { Button } from "../../ui/controls";
import { Decide } from "../../ui/decide";
import { OneSide } from "../../ui/diff";
import { Page } from "../../ui/layout";
import { MemoryFacts } from "../../ui/memory-facts";
import { Empty, Show } from "../../ui/states";
import { Origin, Text } from "../../ui/text";
import { Time } from "../../ui/time";
import { attempt, toast } from "../../ui/toast";
import { History } from "./history";
import { t } from "./strings";
import "./page.css";

const idOf = ({ older, newer }: Pair) => `${older.id}+${newer.id}`;

export default function Conflicts() {
  const waiting = useOperation("waiting", {});
  const pairs = waiting.data?.conflicts ?? [];
  const shown = useRef<{ id: string; at: number }>({ id: "", at: 0 });
  const wanted = useRef("");
  const moved = useSignal(0);
  const isBusy = useSignal(false);
  const decided = useSignal<readonly string[]>([]);
  const isOwner = me.value?.owner ?? false;

  void moved.value;
  const placeOf = (id: string) => pairs.findIndex((pair) => idOf(pair) === id);
  const back = placeOf(wanted.current);
  if (back >= 0) wanted.current = "";
  const found = back >= 0 ? back : placeOf(shown.current.id);
  const at = found >= 0 ? found : Math.max(0, Math.min(shown.current.at, pairs.length - 1));
  const pair = pairs[at];
  shown.current = { id: pair ? idOf(pair) : "", at };

  const move = (step: number) => {
    const next = pairs[Math.max(0, Math.min(at + step, pairs.length - 1))];
    if (next) shown.current = { id: idOf(next), at };
    moved.value++;
  };
  const settle = (choice: Choice) =>
    attempt(async () => {
      if (!pair || !isOwner || isBusy.value) return;
      isBusy.value = true;
      try {
        await change("conflicts-resolve", { reference: idOf(pair), choice });
        decided.value = [...decided.value, idOf(pair)];
        toast(t.value.done[choice], undo);
      } finally {
        isBusy.value = false;
      }
    });
  const undo = () =>
    attempt(async () => {
      const last = decided.value.at(-1);
      if (!last) return;
      const settled = (await call("settled", {})).find((one) => `${one.older_id}+${one.newer_id}` === last);
      decided.value = decided.value.slice(0, -1);
      if (settled) await change("undo", { operation: settled.operation });
      wanted.current = last; // it comes back with the next list, or came already
      moved.value++;
      toast(t.value.undone);
    });
  useShortcuts(titles.value.conflicts, [
    { keys: "1", says: t.value.says.old, run: () => settle("keep-old") },
    { keys: "2", says: t.value.says.new, run: () => settle("keep-new") },
    { keys: "b", says: t.value.says.both, run: () => settle("keep-both") },
    { keys: "u", says: t.value.says.undo, run: undo },
    { keys: "j, arrowdown", says: t.value.says.next, run: () => move(1) },
    { keys: "k, arrowup", says: t.value.says.previous, run: () => move(-1) },
  ]);
  const isOff = !pair || !isOwner || isBusy.value;

  return (
    <Page wide title={titles.value.conflicts} actions={pair && <Steps at={at} of={pairs.length} onMove={move} />}>
      <Decide
        label={t.value.actions}
        note={!isOwner && t.value.ownerOnly}
        aside={
          <Button look="quiet" shortcut="u" disabled={!decided.value.length} onClick={undo}>
            {t.value.undo}
          </Button>
        }
      >
        <Button shortcut="1" disabled={isOff} onClick={() => settle("keep-old")}>
          {t.value.keepOld}
        </Button>
        <Button shortcut="2" disabled={isOff} onClick={() => settle("keep-new")}>
          {t.value.keepNew}
        </Button>
        <Button shortcut="b" disabled={isOff} onClick={() => settle("keep-both")}>
          {t.value.both}
        </Button>
      </Decide>
      <Show of={waiting} lines={8}>
        {() => (pair ? <Beside pair={pair} /> : <Empty title={t.value.emptyTitle}>{t.value.emptyNote}</Empty>)}
      </Show>
      <History isOwner={isOwner} />
    </Page>
  );
}

function Steps({ at, of, onMove }: { at: number; of: number; onMove: (step: number) => void }) {
  return (
    <div class="conflict-steps">
      <span role="status">{t.value.place(at + 1, of)}</span>
      <Button look="quiet" shortcut="k" disabled={at === 0} onClick={() => onMove(-1)}>
        {t.value.previous}
      </Button>
      <Button look="quiet" shortcut="j" disabled={at >= of - 1} onClick={() => onMove(1)}>
        {t.value.next}
      </Button>
    </div>
  );
}

/** Two memories that cannot both hold, beside each other. */
function Beside({ pair }: { pair: Pair }) {
  const { older, newer, reason, judged } = pair;
  const sure = judged ? number(judged.confidence, { style: "percent" }) : "";
  return (
    <>
      <p class="conflict-reason">
        {reason && (
          <b dir="auto">
            <Text>{reason}</Text>
          </b>
        )}
        <span>{judged ? t.value.judged(judged.model, sure) : t.value.rules}</span>
      </p>
      <div class="conflict-pair">
        <Side title={t.value.older} memory={older} other={newer} side="before" />
        <Side title={t.value.newer} memory={newer} other={older} side="after" />
      </div>
    </>
  );
}

function Side(props: { title: string; memory: Memory; other: Memory; side: "before" | "after" }) {
  const { memory, other, side } = props;
  const known = useOperation("look", { reference: memory.id, update: false }, { on: ["memory"] }).data;
  return (
    <article class="conflict-side">
      <header>
        <h2>
          <a href={`/memories/${memory.id}`}>{props.title}</a>
        </h2>
        <MemoryFacts memory={memory} more={[t.value.toldBy[memory.speaker]]} />
      </header>
      <Origin trust={memory.trust} proposed={memory.proposed}>
        <OneSide text={memory.content} other={other.content} side={side} />
      </Origin>
      <Quotes evidence={known?.evidence} recalled={known?.usage.recall_count} />
    </article>
  );
}

function Quotes({ evidence, recalled }: { evidence: readonly Evidence[] | undefined; recalled: number | undefined }) {
  return (
    <div class="conflict-evidence">
      <h3>
        {t.value.evidence}
        {recalled !== undefined && <span>{t.value.used(recalled)}</span>}
      </h3>
      {evidence?.length === 0 && <p class="conflict-none">{t.value.noEvidence}</p>}
      {evidence?.map((one) => (
        <blockquote key={one.turn_id} dir="auto">
          <p>
            <Text>{one.excerpt}</Text>
          </p>
          <footer>
            {t.value.toldBy[one.speaker]}
            {one.time && <Time at={one.time} />}
            <a class="link" href={`/sessions/${encodeURIComponent(one.session_id)}`}>
              {t.value.session}
            </a>
          </footer>
        </blockquote>
      ))}
    </div>
  );
}
