import { useSignal } from "@preact/signals";
import { useOperation } from "../../api/cache";
import type { Memory } from "../../api/types";
import { common } from "../../i18n/common";
import { Dialog } from "../../ui/dialog";
import { WordDiff } from "../../ui/diff";
import { KindMark } from "../../ui/kind";
import { Text } from "../../ui/text";
import { t } from "./strings";
import "../../app/palette.css";

const MOST = 7;
const MOST_ASKED = 400;

/** Choose the memory to merge into: similar ones first, then by typing; with a preview of the result. */
export function Picker(props: { memory: Memory; onPick: (into: Memory) => void; onClose: () => void }) {
  const { memory } = props;
  const words = useSignal("");
  const chosen = useSignal<number | null>(null);
  const { found, isSure } = useTargets(memory, words.value.trim());
  const at = Math.min(chosen.value ?? (isSure ? 0 : -1), found.length - 1);
  const target = found[at];
  const steer = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) chosen.value = (Math.max(at, step < 0 ? 0 : -1) + step + found.length) % Math.max(found.length, 1);
    else if (event.key === "Enter" && !event.isComposing) target && props.onPick(target);
    else return;
    event.preventDefault();
  };
  return (
    <Dialog title={t.value.mergeInto} place="top" onClose={props.onClose}>
      <input
        class="palette-input"
        type="text"
        role="combobox"
        aria-expanded="true"
        aria-controls="merge-targets"
        aria-activedescendant={target ? `merge-${target.id}` : undefined}
        aria-label={t.value.mergeInto}
        placeholder={t.value.search}
        autocomplete="off"
        spellcheck={false}
        onInput={(event) => {
          words.value = event.currentTarget.value;
          chosen.value = null;
        }}
        onKeyDown={steer}
      />
      <div class="palette-results merge-targets" id="merge-targets" role="listbox" aria-label={t.value.mergeInto}>
        {(found.length === 0 || !isSure) && (
          <p class="palette-none">{found.length === 0 ? t.value.nothing : t.value.unsure}</p>
        )}
        {found.map((one, index) => (
          <div
            key={one.id}
            id={`merge-${one.id}`}
            role="option"
            aria-selected={index === at}
            onPointerMove={() => {
              chosen.value = index;
            }}
            onClick={() => props.onPick(one)}
          >
            <KindMark kind={one.kind} />
            <span class="palette-text" dir="auto">
              <Text>{one.subject}</Text>
            </span>
            <span class="palette-note">{one.project ?? common.value.holdsEverywhere}</span>
          </div>
        ))}
      </div>
      {target && (
        <div class="merge-result">
          <h3>{t.value.result}</h3>
          <WordDiff before={target.content} after={joined(target.content, memory.content)} />
        </div>
      )}
    </Dialog>
  );
}

/** The possible targets: confident recall hits or search results, else the latest memories of the project. */
function useTargets(memory: Memory, words: string): { found: readonly Memory[]; isSure: boolean } {
  const isTyped = words.length > 1;
  const near = {
    text: memory.content.slice(0, MOST_ASKED),
    limit: MOST,
    update: false,
    co_recall: false,
    confident: true,
  };
  const nearest = useOperation("recall", near, { on: [], off: isTyped }).data;
  const listed = useOperation("list", { words, limit: MOST }, { on: [], off: !isTyped, keep: true }).data;
  const filter = memory.project ? { projects: [memory.project] } : {};
  const recent = useOperation("list", { filter, limit: MOST }, { on: [], off: isTyped }).data;
  const others = (some: readonly Memory[] | undefined) => some?.filter(({ id }) => id !== memory.id) ?? [];
  if (isTyped) return { found: others(listed?.memories), isSure: true };
  const sure = others(nearest?.hits.map((hit) => hit.memory));
  const latest = nearest ? others(recent?.memories).filter(({ id }) => sure.every((one) => one.id !== id)) : [];
  return { found: [...sure, ...latest].slice(0, MOST), isSure: sure.length > 0 || !nearest };
}

/** Join as the daemon does (`review/merge.py`): only the first if it contains the other's words. */
function joined(into: string, more: string): string {
  const plain = (text: string) => text.toLowerCase().replace(/\s+/g, " ").trim();
  if (plain(into).includes(plain(more))) return into;
  const between = `${into}${more}`.includes("\n") ? "\n\n" : " ";
  return `${into.trimEnd()}${between}${more.trim()}`;
}
