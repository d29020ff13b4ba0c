import { useSignal } from "@preact/signals";
import { useLayoutEffect, useRef } from "preact/hooks";
import { useOperation } from "../../api/cache";
import { call, Problem } from "../../api/client";
import { common } from "../../i18n/common";
import { Button, TextArea } from "../../ui/controls";
import { WordDiff } from "../../ui/diff";
import { toastProblem } from "../../ui/toast";
import { Head } from "./card";
import type { Details, Item } from "./queue";
import { t } from "./strings";

/** Edit the words of a pending item. If its file changed meanwhile, both versions are shown and nothing is overwritten. */
export function Editor(props: { item: Item; onSave: (details: Details) => Promise<void>; onCancel: () => void }) {
  const { item, onCancel } = props;
  const file = useOperation("look", { reference: item.id, update: false }, { off: item.kind === "candidate" });
  const words = useSignal(item.memory.content);
  const began = useSignal(item.memory.content);
  const isSaving = useSignal(false);
  const form = useRef<HTMLFormElement>(null);
  const says = file.data?.memory.content ?? began.value;
  const theirs = says === began.value ? null : says;

  useLayoutEffect(() => {
    const field = form.current?.querySelector("textarea");
    field?.focus();
    field?.setSelectionRange(field.value.length, field.value.length);
  }, []);
  const settle = (content: string | null) => {
    if (content !== null) words.value = content;
    began.value = says;
  };
  /** If other parts of the file change, the edit stays valid. */
  const versionAsSeen = async () => {
    if (item.kind === "candidate") return null;
    const now = await call("look", { reference: item.id, update: false });
    return now.memory.content === began.value ? now.etag : undefined;
  };
  const save = async () => {
    if (isSaving.value || theirs !== null || !words.value.trim()) return;
    isSaving.value = true;
    try {
      const expected = await versionAsSeen();
      if (expected !== undefined) return await props.onSave({ content: words.value, expected });
      isSaving.value = false;
      file.refresh();
    } catch (error) {
      isSaving.value = false;
      if (error instanceof Problem && error.code === "edit_conflict") file.refresh();
      else toastProblem(error);
    }
  };
  const steer = (event: KeyboardEvent) => {
    if (event.key === "Escape") onCancel();
    else if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) save();
    else return;
    event.preventDefault();
  };
  return (
    <form
      class="stack review-card"
      ref={form}
      onKeyDown={steer}
      onSubmit={(event) => {
        event.preventDefault();
        save();
      }}
    >
      <Head item={item} />
      {theirs !== null && (
        <div class="review-changed" role="alert">
          <p>
            <b>{t.value.changed}</b> {t.value.changedNote}
          </p>
          <WordDiff before={began.value} after={theirs} />
          <div class="buttons">
            <Button onClick={() => settle(theirs)}>{t.value.takeTheirs}</Button>
            <Button onClick={() => settle(null)}>{t.value.keepMine}</Button>
          </div>
        </div>
      )}
      <TextArea
        label={t.value.content}
        value={words.value}
        rows={Math.min(18, Math.max(5, Math.ceil(item.memory.content.length / 60)))}
        onInput={(event) => (words.value = event.currentTarget.value)}
      />
      <div class="buttons">
        <Button
          look="primary"
          type="submit"
          shortcut="Ctrl ↵"
          disabled={isSaving.value || theirs !== null || !words.value.trim()}
        >
          {t.value.save}
        </Button>
        <Button look="quiet" shortcut="esc" onClick={onCancel}>
          {common.value.cancel}
        </Button>
      </div>
    </form>
  );
}
