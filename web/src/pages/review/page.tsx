import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { useOperation } from "../../api/cache";
import { me } from "../../api/me";
import { useShortcuts } from "../../app/keys";
import { titles } from "../../app/pages";
import { query } from "../../app/router";
import { common } from "../../i18n/common";
import { Button } from "../../ui/controls";
import { Conversation, useConversation } from "../../ui/conversation";
import { Decide } from "../../ui/decide";
import { bare } from "../../ui/hidden";
import { Page } from "../../ui/layout";
import { Empty, Failure, Skeleton } from "../../ui/states";
import { Text } from "../../ui/text";
import { Card } from "./card";
import { Editor } from "./editor";
import { Picker } from "./picker";
import {
  type Choice,
  type Details,
  decide,
  decideFirst,
  decisions,
  type Item,
  keepAll,
  type Queue,
  undoLast,
  unskip,
  useQueue,
} from "./queue";
import { t } from "./strings";
import "./page.css";

export default function Review() {
  const queue = useQueue();
  const mode = useSignal<"look" | "edit" | "merge">("look");
  const held = useRef<Item | undefined>(undefined);
  /** Picked in the list; only draws the page again. */
  const shown = useSignal<string | null>(null);
  void shown.value;
  const isBusy = mode.value !== "look";
  const same = queue.items.find(({ id }) => id === (held.current?.id ?? query.value.get("item")));
  const item = isBusy ? held.current : queue.isKnown ? (same ?? queue.items[0]) : undefined;
  const next = queue.items.find(({ id }) => id !== item?.id);
  held.current = item;
  useEvidence(next);

  const isOwner = me.value?.owner ?? false;
  const look = () => (mode.value = "look");
  const choose = (choice: Choice, details?: Details) => {
    if (!item || (!isOwner && choice !== "skip") || !choicesOf(item).includes(choice)) return;
    look();
    decide(item, choice, details);
  };
  const turnTo = (wanted: "edit" | "merge") => {
    if (!item || !isOwner || !choicesOf(item).includes(wanted)) return;
    if (item.newer) choose(wanted, { into: item.newer.id });
    else mode.value = wanted;
  };
  const pick = (picked: Item) => {
    look();
    held.current = picked;
    shown.value = picked.id;
  };
  const undo = () => {
    look();
    held.current = undoLast()?.item ?? held.current;
  };
  useShortcuts(titles.value.review, [
    { keys: "k", says: t.value.says.keep, run: () => choose("keep") },
    { keys: "e", says: t.value.says.edit, run: () => turnTo("edit") },
    { keys: "m", says: t.value.says.merge, run: () => turnTo("merge") },
    { keys: "d", says: t.value.says.drop, run: () => choose(item?.newer ? "newer" : "drop") },
    { keys: "n", says: t.value.says.newer, run: () => choose("newer") },
    { keys: "o", says: t.value.says.older, run: () => choose("older") },
    { keys: "s", says: t.value.says.skip, run: () => choose("skip") },
    { keys: "u", says: t.value.says.undo, run: undo },
  ]);

  return (
    <Page wide title={titles.value.review} actions={<Counter left={queue.left} />}>
      <Actions
        item={item}
        isEditing={mode.value === "edit"}
        isOwner={isOwner}
        onChoose={choose}
        onMode={turnTo}
        onUndo={undo}
      />
      {item ? (
        <Beside item={item} queue={queue} isOwner={isOwner} onPick={pick}>
          {mode.value === "edit" ? (
            <Editor
              key={item.id}
              item={item}
              onCancel={look}
              onSave={async (details) => {
                await decideFirst(item, "edit", details);
                look();
              }}
            />
          ) : (
            <Card item={item} />
          )}
        </Beside>
      ) : (
        <Nothing isKnown={queue.isKnown} problem={queue.problem} retry={queue.refresh} />
      )}
      {mode.value === "merge" && item && (
        <Picker memory={item.memory} onClose={look} onPick={(into) => choose("merge", { into: into.id })} />
      )}
    </Page>
  );
}

/** Conflicts: end one, keep both, or merge the older into the newer. Other items: keep or drop. */
function choicesOf(item: Item): readonly Choice[] {
  return item.newer ? ["keep", "newer", "older", "merge", "skip"] : ["keep", "edit", "merge", "drop", "skip"];
}

/** Load the context of an item before it is shown. */
function useEvidence(item: Item | undefined): void {
  useConversation(item?.memory);
  useOperation("look", { reference: item?.id ?? "", update: false }, { on: [], off: item?.kind !== "doubt" });
}

function Beside(props: {
  item: Item;
  queue: Queue;
  isOwner: boolean;
  onPick: (item: Item) => void;
  children: preact.ComponentChildren;
}) {
  const { item } = props;
  useEffect(() => {
    if (scrollY > 0) scrollTo(0, 0);
  }, [item.id]);
  return (
    <div class="review">
      <Waiting {...props} />
      <div class="review-item">
        {props.children}
        <Conversation memory={item.memory} of={item.newer ? t.value.olderOne : undefined} />
        {item.newer && <Conversation memory={item.newer} of={t.value.newerOne} />}
      </div>
    </div>
  );
}

/** The whole queue by kind. */
function Waiting(props: { item: Item; queue: Queue; isOwner: boolean; onPick: (item: Item) => void }) {
  const groups = new Map<string, Item[]>();
  for (const one of props.queue.items) {
    const name = one.kind === "candidate" ? common.value.kinds[one.memory.kind] : t.value.kinds[one.kind];
    groups.set(name, [...(groups.get(name) ?? []), one]);
  }
  const rest = props.queue.left - props.queue.items.length;
  return (
    <nav class="review-list" aria-label={t.value.list}>
      {[...groups].map(([name, items]) => (
        <section key={name}>
          <h2>
            {name} <span>{items.length}</span>
            {props.isOwner && items.length > 1 && (
              <Button look="quiet" aria-label={`${t.value.keepAll}: ${name}`} onClick={() => keepAll(items)}>
                {t.value.keepAll}
              </Button>
            )}
          </h2>
          {items.map((one) => (
            <button
              key={one.id}
              type="button"
              dir="auto"
              aria-current={one.id === props.item.id ? "true" : undefined}
              onClick={() => props.onPick(one)}
            >
              <Text>{bare((one.newer ?? one.memory).subject)}</Text>
            </button>
          ))}
        </section>
      ))}
      {rest > 0 && <p>{t.value.more(rest)}</p>}
    </nav>
  );
}

function Counter({ left }: { left: number }) {
  const done = decisions.value.filter(({ choice }) => choice !== "skip").length;
  const skipped = decisions.value.length - done;
  const share = done + left ? done / (done + left) : 0;
  return (
    <div class="review-counter" role="status">
      <span class="review-counts">
        <b>{t.value.left(left)}</b>
        {done > 0 && <span>{t.value.done(done)}</span>}
        {skipped > 0 && <span>{t.value.skipped(skipped)}</span>}
      </span>
      <span class="review-progress" aria-hidden="true">
        <span style={{ transform: `scaleX(${share})` }} />
      </span>
    </div>
  );
}

function Actions(props: {
  item: Item | undefined;
  isEditing: boolean;
  isOwner: boolean;
  onChoose: (choice: Choice) => void;
  onMode: (mode: "edit" | "merge") => void;
  onUndo: () => void;
}) {
  const { item, isEditing, onChoose, onMode } = props;
  const isOff = !item || isEditing || !props.isOwner;
  const canUndo = decisions.value.length > 0;
  return (
    <Decide
      label={t.value.actions}
      note={!props.isOwner && t.value.ownerOnly}
      aside={
        <>
          <Button look="quiet" shortcut="s" disabled={!item || isEditing} onClick={() => onChoose("skip")}>
            {t.value.skip}
          </Button>
          <Button look="quiet" shortcut="u" disabled={!canUndo} onClick={props.onUndo}>
            {t.value.undo}
          </Button>
        </>
      }
    >
      <Button look="primary" shortcut="k" disabled={isOff} onClick={() => onChoose("keep")}>
        {item?.newer ? t.value.both : t.value.keep}
      </Button>
      {item?.newer ? (
        <>
          <Button shortcut="d" disabled={isOff} onClick={() => onChoose("newer")}>
            {t.value.newer}
          </Button>
          <Button shortcut="o" disabled={isOff} onClick={() => onChoose("older")}>
            {t.value.older}
          </Button>
        </>
      ) : (
        <Button shortcut="e" disabled={isOff} onClick={() => onMode("edit")}>
          {t.value.edit}
        </Button>
      )}
      <Button shortcut="m" disabled={isOff} onClick={() => onMode("merge")}>
        {t.value.merge}
      </Button>
      {!item?.newer && (
        <Button shortcut="d" disabled={isOff} onClick={() => onChoose("drop")}>
          {t.value.drop}
        </Button>
      )}
    </Decide>
  );
}

function Nothing(props: {
  isKnown: boolean;
  problem: Parameters<typeof Failure>[0]["problem"] | undefined;
  retry: () => void;
}) {
  if (!props.isKnown)
    return props.problem ? <Failure problem={props.problem} retry={props.retry} /> : <Skeleton lines={8} />;
  const skipped = decisions.value.filter(({ choice }) => choice === "skip").length;
  const done = decisions.value.length - skipped;
  if (skipped) {
    return (
      <Empty title={t.value.skippedTitle(skipped)}>
        <p>{t.value.skippedNote}</p>
        <Button onClick={unskip}>{t.value.again}</Button>
      </Empty>
    );
  }
  if (done) return <Empty title={t.value.doneTitle}>{t.value.doneNote(done)}</Empty>;
  return <Empty title={t.value.emptyTitle}>{t.value.emptyNote}</Empty>;
}
