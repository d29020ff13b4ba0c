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

/** Choose the memory that another one goes into: the nearest at first, then as one types; below, what it will say. */
export function Picker(props: { memory: Memory; onPick: (into: Memory) => void; onClose: () => void }) {
  const { memory } = props;
  const words = useSignal("");
  const chosen = useSignal(0);
  const found = useTargets(memory, words.value.trim());
  const at = Math.max(0, Math.min(chosen.value, found.length - 1));
  const target = found[at];
  const steer = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) chosen.value = (at + step + found.length) % Math.max(found.length, 1);
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
          chosen.value = 0;
        }}
        onKeyDown={steer}
      />
      <div class="palette-results merge-targets" id="merge-targets" role="listbox" aria-label={t.value.mergeInto}>
        {found.length === 0 && <p class="palette-none">{t.value.nothing}</p>}
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

function useTargets(memory: Memory, words: string): readonly Memory[] {
  const isTyped = words.length > 1;
  const near = { text: memory.content.slice(0, MOST_ASKED), limit: MOST, update: false, co_recall: false };
  const nearest = useOperation("recall", near, { on: [], off: isTyped }).data;
  const listed = useOperation("list", { words, limit: MOST }, { on: [], off: !isTyped, keep: true }).data;
  const recent = useOperation("list", { limit: MOST }, { on: [], off: isTyped }).data;
  const sure = nearest?.hits.map((hit) => hit.memory) ?? [];
  const found = sure.length || !nearest?.nearest ? sure : [nearest.nearest[0]];
  const shown = isTyped ? (listed?.memories ?? []) : [...found, ...(nearest ? (recent?.memories ?? []) : [])];
  return shown
    .filter((one, index) => one.id !== memory.id && shown.findIndex(({ id }) => id === one.id) === index)
    .slice(0, MOST);
}

/** As the daemon joins them (`review/merge.py`): the first alone where it holds the other's words. */
function joined(into: string, more: string): string {
  const plain = (text: string) => text.toLowerCase().replace(/\s+/g, " ").trim();
  if (plain(into).includes(plain(more))) return into;
  const between = `${into}${more}`.includes("\n") ? "\n\n" : " ";
  return `${into.trimEnd()}${between}${more.trim()}`;
}
