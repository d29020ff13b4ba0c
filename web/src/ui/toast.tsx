import { signal } from "@preact/signals";
import { asProblem } from "../api/client";
import { common } from "../i18n/common";
import { said } from "../i18n/said";
import { Text } from "./text";
import "./toast.css";

interface Toast {
  key: number;
  text: string;
  note: string | null;
  isProblem: boolean;
  undo: (() => void) | null;
}

const SHOWN_MS = 8_000;
const shown = signal<readonly Toast[]>([]);
let keys = 0;

/** Show a success message; `undo` reverts the action. */
export function toast(text: string, undo?: () => unknown): void {
  show({ text, note: null, isProblem: false, undo: undo ? () => attempt(undo) : null });
}

/** Show an error with its hint. */
export function toastProblem(error: unknown): void {
  const problem = asProblem(error);
  show({ text: said(problem.message), note: problem.hint && said(problem.hint), isProblem: true, undo: null });
}

/** Run a person's action and show an error if it fails. */
export async function attempt(work: () => unknown): Promise<void> {
  try {
    await work();
  } catch (error) {
    toastProblem(error);
  }
}

function show(one: Omit<Toast, "key">): void {
  const key = ++keys;
  shown.value = [...shown.value.slice(-2), { ...one, key }];
  setTimeout(() => dismiss(key), SHOWN_MS);
}

function dismiss(key: number): void {
  shown.value = shown.value.filter((one) => one.key !== key);
}

/** The area for toasts; rendered once by the shell. */
export function Toasts() {
  return (
    <div class="toasts" role="status" aria-live="polite">
      {shown.value.map((one) => (
        <div key={one.key} class={one.isProblem ? "toast problem" : "toast"}>
          <div>
            <p>
              <Text>{one.text}</Text>
            </p>
            {one.note && <p class="toast-note">{one.note}</p>}
          </div>
          {one.undo && (
            <button
              type="button"
              onClick={() => {
                dismiss(one.key);
                one.undo?.();
              }}
            >
              {common.value.undo}
            </button>
          )}
          <button type="button" aria-label={common.value.close} onClick={() => dismiss(one.key)}>
            ×
          </button>
        </div>
      ))}
    </div>
  );
}
