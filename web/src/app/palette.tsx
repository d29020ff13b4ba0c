import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { useOperation } from "../api/cache";
import { common } from "../i18n/common";
import { Dialog } from "../ui/dialog";
import { Icon, type IconName } from "../ui/icon";
import { Text } from "../ui/text";
import { addressOf, navigation, titles } from "./pages";
import { go } from "./router";
import { t } from "./strings";
import "./palette.css";

interface Entry {
  key: string;
  icon: IconName;
  text: string;
  note: string;
  to: string;
}

const MOST = 8;

/** Search pages by name and memories by their words while typing. */
export function Palette({ onClose }: { onClose: () => void }) {
  const words = useSignal("");
  const chosen = useSignal(0);
  const entries = useEntries(words.value.trim());
  const at = Math.min(chosen.value, entries.length - 1);
  const open = (entry: Entry | undefined) => {
    if (!entry) return;
    onClose();
    go(entry.to);
  };
  const steer = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) chosen.value = (at + step + entries.length) % Math.max(entries.length, 1);
    else if (event.key === "Enter" && !event.isComposing) open(entries[at]);
    else return;
    event.preventDefault();
  };
  return (
    <Dialog title={t.value.search} place="top" onClose={onClose}>
      <input
        class="palette-input"
        type="text"
        role="combobox"
        aria-expanded="true"
        aria-controls="palette-results"
        aria-activedescendant={entries[at] ? `palette-${entries[at].key}` : undefined}
        aria-label={t.value.searchFor}
        placeholder={t.value.searchFor}
        autocomplete="off"
        spellcheck={false}
        onInput={(event) => {
          words.value = event.currentTarget.value;
          chosen.value = 0;
        }}
        onKeyDown={steer}
      />
      <Results entries={entries} at={at} onOpen={open} onPoint={(index) => (chosen.value = index)} />
    </Dialog>
  );
}

function Results(props: {
  entries: readonly Entry[];
  at: number;
  onOpen: (entry: Entry) => void;
  onPoint: (index: number) => void;
}) {
  const element = useRef<HTMLDivElement>(null);
  useEffect(() => {
    element.current?.querySelector('[aria-selected="true"]')?.scrollIntoView({ block: "nearest" });
  }, [props.at]);
  return (
    <div class="palette-results" id="palette-results" role="listbox" aria-label={t.value.search} ref={element}>
      {props.entries.length === 0 && <p class="palette-none">{t.value.nothing}</p>}
      {props.entries.map((entry, index) => (
        <div
          key={entry.key}
          id={`palette-${entry.key}`}
          role="option"
          aria-selected={index === props.at}
          onPointerMove={() => props.onPoint(index)}
          onClick={() => props.onOpen(entry)}
        >
          <Icon name={entry.icon} />
          <span class="palette-text" dir="auto">
            <Text>{entry.text}</Text>
          </span>
          <span class="palette-note">{entry.note}</span>
        </div>
      ))}
    </div>
  );
}

function useEntries(words: string): readonly Entry[] {
  const found = useOperation("list", { words, limit: MOST }, { off: words.length < 2, keep: true });
  const memories = words.length < 2 ? [] : (found.data?.memories ?? []);
  const wanted = words.toLowerCase();
  const pages = navigation.value
    .flat()
    .filter(({ page }) => !words || titles.value[page].toLowerCase().includes(wanted))
    .map(({ page, icon }) => ({ key: page, icon, text: titles.value[page], note: "", to: addressOf(page) }));
  const asked = encodeURIComponent(words);
  const more: Entry[] =
    words.length < 2
      ? []
      : [
          { key: "all", icon: "memories", text: t.value.searchAll(words), note: "", to: `/memories?q=${asked}` },
          { key: "ask", icon: "ask", text: t.value.ask(words), note: "", to: `/ask?q=${asked}` },
        ];
  return [
    ...(words ? [] : pages),
    ...memories.map((one) => ({
      key: one.id,
      icon: "memories" as const,
      text: one.subject,
      note: `${common.value.kinds[one.kind]}${one.project ? ` · ${one.project}` : ""}`,
      to: `/memories/${one.id}`,
    })),
    ...(words ? pages : []),
    ...more,
  ];
}
