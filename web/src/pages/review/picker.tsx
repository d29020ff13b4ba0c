import { useSignal } from "@preact/signals";
import { useOperation } from "../../api/cache";
import type { Memory } from "../../api/types";
import { common } from "../../i18n/common";
import { Combobox } from "../../ui/combobox";
import { Dialog } from "../../ui/dialog";
import { WordDiff } from "../../ui/diff";
import { bare } from "../../ui/hidden";
import { KindMark } from "../../ui/kind";
import { Text } from "../../ui/text";
import { t } from "./strings";

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
  return (
    <Dialog title={t.value.mergeInto} place="top" onClose={props.onClose}>
      <Combobox
        id="merge-targets"
        label={t.value.mergeInto}
        placeholder={t.value.search}
        keys={found.map(({ id }) => id)}
        at={at}
        note={found.length === 0 ? t.value.nothing : !isSure && t.value.unsure}
        onInput={(typed) => {
          words.value = typed;
          chosen.value = null;
        }}
        onChoose={(index) => (chosen.value = index)}
        onOpen={(index) => found[index] && props.onPick(found[index])}
        render={(index) => <Target memory={found[index]} />}
      />
      {target && (
        <div class="merge-result">
          <h3>{t.value.result}</h3>
          <WordDiff before={target.content} after={joined(target.content, memory.content)} />
        </div>
      )}
    </Dialog>
  );
}

function Target({ memory }: { memory: Memory | undefined }) {
  if (!memory) return null;
  return (
    <>
      <KindMark kind={memory.kind} />
      <span class="clip palette-text" dir="auto">
        <Text>{bare(memory.subject)}</Text>
      </span>
      <span class="palette-note">{memory.project ?? common.value.holdsEverywhere}</span>
    </>
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
