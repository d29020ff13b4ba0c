import { signal } from "@preact/signals";
import { useLayoutEffect, useRef } from "preact/hooks";

/** A key or a sequence of two (`g m`), its description, and its action. */
export interface Shortcut {
  keys: string;
  says: string;
  run: () => void;
}

interface Group {
  title: string;
  shortcuts: readonly Shortcut[];
}

const SEQUENCE_MS = 900;
/** The active keys; the latest group has precedence. */
export const groups = signal<readonly { current: Group }[]>([]);
let before = { key: "", at: 0 };

/** Register keys as soon as the component is shown and until it is removed. They are ignored while typing and under dialogs. */
export function useShortcuts(title: string, shortcuts: readonly Shortcut[]): void {
  const group = useRef<Group>({ title, shortcuts });
  group.current = { title, shortcuts };
  useLayoutEffect(() => {
    groups.value = [...groups.peek(), group];
    return () => {
      groups.value = groups.peek().filter((one) => one !== group);
    };
  }, []);
}

/** Listen for keys; called once by the shell. */
export function startKeys(): void {
  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.isComposing) return;
    const key = named(event);
    if (!key) return;
    if (isTyping(event.target) && key !== "ctrl+k") return leave(event.target, key);
    if (document.querySelector("dialog[open]")) return;
    const sequence = event.timeStamp - before.at < SEQUENCE_MS ? `${before.key} ${key}` : "";
    before = { key, at: event.timeStamp };
    const found = find(sequence) ?? find(key);
    if (!found) return;
    event.preventDefault();
    before = { key: "", at: 0 };
    found.run();
  });
}

function find(keys: string): Shortcut | undefined {
  if (!keys) return undefined;
  for (const group of groups.peek().toReversed()) {
    const found = group.current.shortcuts.find((one) => one.keys.split(", ").includes(keys));
    if (found) return found;
  }
  return undefined;
}

function named(event: KeyboardEvent): string | null {
  if (event.altKey || ["Shift", "Control", "Meta", "Alt"].includes(event.key)) return null;
  const key = event.key.length === 1 ? event.key : event.key.toLowerCase();
  if (event.ctrlKey || event.metaKey) return `ctrl+${key.toLowerCase()}`;
  if (key === "enter" && isActive(event.target)) return null;
  return key;
}

/** Links and buttons handle Enter themselves. */
function isActive(target: EventTarget | null): boolean {
  return target instanceof Element && target.closest("a, button, summary") !== null;
}

/** Escape leaves a search field, so that keys act on the page again. */
function leave(target: EventTarget | null, key: string): void {
  if (key === "escape" && target instanceof HTMLInputElement && !target.closest("dialog")) target.blur();
}

function isTyping(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName))
  );
}
