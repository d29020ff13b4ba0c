import { useSignal } from "@preact/signals";
import { useLayoutEffect, useRef } from "preact/hooks";
import { change } from "../../api/cache";
import { asProblem, call } from "../../api/client";
import type { Kind, Memory, MemoryView, Operations } from "../../api/types";
import { common } from "../../i18n/common";
import { Button, SaveOrCancel, Select, TextArea, TextField } from "../../ui/controls";
import { WordDiff } from "../../ui/diff";
import { Markdown } from "../../ui/markdown";
import { toast, toastProblem } from "../../ui/toast";
import { t } from "./strings";

interface Draft {
  subject: string;
  content: string;
  kind: Kind;
  importance: string;
  tags: string;
  triggers: string;
  trigger_times: string;
}

const NUMBERS: Record<string, object> = {
  importance: { type: "number", min: "1", max: "10" },
  trigger_times: { type: "number", min: "0" },
};

/** The form of a memory. Concurrent changes are shown next to it and never overwritten unseen. */
export function Edit({ view, onDone }: { view: MemoryView; onDone: () => void }) {
  const base = useSignal(view);
  const draft = useSignal<Draft>(draftOf(view));
  const theirs = useSignal<MemoryView | null>(null);
  const isSaving = useSignal(false);
  const form = useRef<HTMLFormElement>(null);
  useLayoutEffect(() => form.current?.querySelector("input")?.focus(), []);
  const set = (part: Partial<Draft>) => {
    draft.value = { ...draft.peek(), ...part };
  };
  const save = async (from: MemoryView) => {
    if (isSaving.peek()) return;
    isSaving.value = true;
    try {
      await change("edit", requestOf(from, draft.peek()));
      toast(t.value.saved);
      onDone();
    } catch (error) {
      if (asProblem(error).code === "edit_conflict") {
        theirs.value = await call("look", { reference: from.memory.id, update: false });
      } else toastProblem(error);
    }
    isSaving.value = false;
  };
  if (theirs.value) {
    const now = theirs.value;
    return (
      <Conflict
        mine={draft.value}
        theirs={now}
        onMine={() => {
          base.value = now;
          theirs.value = null;
          save(now);
        }}
        onTheirs={onDone}
      />
    );
  }
  return (
    <form
      ref={form}
      class="stack"
      onSubmit={(event) => {
        event.preventDefault();
        save(base.peek());
      }}
      onKeyDown={(event) => {
        if (event.key === "Escape") onDone();
        if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) save(base.peek());
      }}
    >
      <Fields draft={draft.value} set={set} />
      <SaveOrCancel isSaving={isSaving.value} onCancel={onDone} />
    </form>
  );
}

function Fields({ draft, set }: { draft: Draft; set: (part: Partial<Draft>) => void }) {
  return (
    <>
      <TextField
        label={t.value.subject}
        value={draft.subject}
        required
        onInput={(event) => set({ subject: event.currentTarget.value })}
      />
      <TextArea
        label={t.value.content}
        hint={t.value.contentHint}
        value={draft.content}
        rows={6}
        required
        onInput={(event) => set({ content: event.currentTarget.value })}
      />
      <div class="memory-fields">
        <Select
          label={t.value.kind}
          value={draft.kind}
          options={Object.entries(common.value.kinds)}
          onPick={(kind) => set({ kind: kind as Kind })}
        />
        {(["importance", "tags", "triggers", "trigger_times"] as const).map((name) => (
          <TextField
            key={name}
            label={t.value[name]}
            hint={t.value.hints[name]}
            {...NUMBERS[name]}
            value={draft[name]}
            onInput={(event) => set({ [name]: event.currentTarget.value })}
          />
        ))}
      </div>
    </>
  );
}

function Conflict(props: { mine: Draft; theirs: MemoryView; onMine: () => void; onTheirs: () => void }) {
  const { mine, theirs } = props;
  return (
    <section class="conflict" role="alert">
      <h2>{t.value.conflict}</h2>
      <p>{t.value.conflictNote}</p>
      <div class="memory-sides">
        <div>
          <h3>{t.value.theirs}</h3>
          <Markdown>{theirs.memory.content}</Markdown>
        </div>
        <div>
          <h3>{t.value.mine}</h3>
          <Markdown>{mine.content}</Markdown>
        </div>
      </div>
      <h3>{t.value.difference}</h3>
      <WordDiff before={theirs.memory.content} after={mine.content} />
      <div class="memory-buttons">
        <Button look="primary" onClick={props.onMine}>
          {t.value.keepMine}
        </Button>
        <Button onClick={props.onTheirs}>{t.value.takeTheirs}</Button>
      </div>
    </section>
  );
}

/** Return the number of deliveries after which the triggers end, or nothing. */
export function timesOf({ extra }: Memory): string {
  return String(extra.trigger_times ?? "");
}

function draftOf({ memory }: MemoryView): Draft {
  return {
    subject: memory.subject,
    content: memory.content,
    kind: memory.kind,
    importance: String(memory.importance),
    tags: memory.tags.join(", "),
    triggers: memory.triggers.join(", "),
    trigger_times: timesOf(memory),
  };
}

/** Return the fields that differ from the memory as read. */
function requestOf(view: MemoryView, draft: Draft): Operations["edit"][0] {
  const before = draftOf(view);
  const list = (text: string) => text.split(/[,,]/).flatMap((one) => one.trim() || []);
  const values: Record<string, unknown> = {
    ...draft,
    importance: Number(draft.importance),
    tags: list(draft.tags),
    triggers: list(draft.triggers),
    trigger_times: Number(draft.trigger_times),
  };
  const changed = (Object.keys(before) as (keyof Draft)[]).filter((name) => draft[name] !== before[name]);
  return {
    reference: view.memory.id,
    ...(view.etag ? { expected: view.etag } : {}),
    ...Object.fromEntries(changed.map((name) => [name, values[name]])),
  };
}
