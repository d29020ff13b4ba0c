import { useSignal } from "@preact/signals";
import { useOperation } from "../api/cache";
import { common } from "../i18n/common";
import { Combobox } from "../ui/combobox";
import { Dialog } from "../ui/dialog";
import { bare } from "../ui/hidden";
import { Icon, type IconName } from "../ui/icon";
import { Text } from "../ui/text";
import { groups } from "./keys";
import { addressOf, navigation, titles } from "./pages";
import { go } from "./router";
import { t } from "./strings";

interface Entry {
  key: string;
  icon: IconName;
  text: string;
  note: string;
  /** An address, or an action of this page. */
  to: string | (() => void);
}

const MOST = 5;
const LONG_ENOUGH = 2;

/** Find memories, sessions, pages and the actions of this page while typing. */
export function Palette({ onClose }: { onClose: () => void }) {
  const words = useSignal("");
  const chosen = useSignal(0);
  const entries = useEntries(words.value.trim());
  const at = Math.min(chosen.value, entries.length - 1);
  const open = (entry: Entry | undefined) => {
    if (!entry) return;
    onClose();
    if (typeof entry.to === "string") go(entry.to);
    else entry.to();
  };
  return (
    <Dialog title={t.value.search} place="top" onClose={onClose}>
      <Combobox
        id="palette"
        label={t.value.searchFor}
        placeholder={t.value.searchFor}
        keys={entries.map(({ key }) => key)}
        at={at}
        note={entries.length === 0 && t.value.nothing}
        onInput={(typed) => {
          words.value = typed;
          chosen.value = 0;
        }}
        onChoose={(index) => (chosen.value = index)}
        onOpen={(index) => open(entries[index])}
        render={(index) => <Result entry={entries[index]} />}
      />
    </Dialog>
  );
}

function Result({ entry }: { entry: Entry | undefined }) {
  if (!entry) return null;
  return (
    <>
      <Icon name={entry.icon} />
      <span class="clip palette-text" dir="auto">
        <Text>{entry.text}</Text>
      </span>
      <span class="palette-note">{entry.note}</span>
    </>
  );
}

function useEntries(words: string): readonly Entry[] {
  const off = words.length < LONG_ENOUGH;
  const listed = useOperation("list", { words, limit: MOST }, { off, keep: true }).data;
  const talked = useOperation("search-sessions", { text: words, limit: MOST, update: false }, { off, keep: true }).data;
  const wanted = words.toLowerCase();
  const pages = navigation.value
    .flat()
    .filter(({ page }) => titles.value[page].toLowerCase().includes(wanted))
    .map(({ page, icon }) => ({ key: page, icon, text: titles.value[page], note: "", to: addressOf(page) }));
  if (off) return pages;
  const asked = encodeURIComponent(words);
  return [
    ...(listed?.memories ?? []).map((one) => ({
      key: one.id,
      icon: "memories" as const,
      text: bare(one.subject),
      note: `${common.value.kinds[one.kind]}${one.project ? ` · ${one.project}` : ""}`,
      to: `/memories/${one.id}`,
    })),
    ...pages,
    ...actions(wanted),
    ...(talked?.turns ?? []).map(({ session, turn, excerpt, project }) => ({
      key: `turn-${turn.id}`,
      icon: "sessions" as const,
      text: bare(excerpt),
      note: [session.tool, project].filter(Boolean).join(" · "),
      to: `/sessions/${encodeURIComponent(`${session.tool}:${session.native_id}`)}?turn=${encodeURIComponent(turn.id)}`,
    })),
    { key: "all", icon: "memories", text: t.value.searchAll(words), note: "", to: `/memories?q=${asked}` },
    { key: "ask", icon: "ask", text: t.value.ask(words), note: "", to: `/ask?q=${asked}` },
  ];
}

/** Return the actions of this page whose description contains the words. */
function actions(wanted: string): Entry[] {
  return groups
    .peek()
    .flatMap(({ current }) => current.shortcuts)
    .filter(({ keys, says }) => !/^(g |\/)/.test(keys) && says.toLowerCase().includes(wanted))
    .map(({ keys, says, run }) => ({ key: `key-${keys[0]}`, icon: "today", text: says, note: keys, to: run }));
}
