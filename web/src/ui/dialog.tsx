import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import { common } from "../i18n/common";
import { Button } from "./controls";
import "./dialog.css";

/** A window over the page, closed by Escape, its button, or a click outside. */
export function Dialog(props: {
  title: string;
  onClose: () => void;
  /** `side` slides in from the edge; `top` is at the search field, without a heading. */
  place?: "centre" | "side" | "top";
  actions?: ComponentChildren;
  children: ComponentChildren;
}) {
  const element = useRef<HTMLDialogElement>(null);
  // Before the next key, which belongs to the window.
  useLayoutEffect(() => {
    const dialog = element.current;
    const before = document.activeElement;
    dialog?.showModal();
    return () => {
      dialog?.close();
      if (before instanceof HTMLElement) before.focus();
    };
  }, []);
  const place = props.place ?? "centre";
  return (
    <dialog
      ref={element}
      class={`dialog at-${place}`}
      aria-label={props.title}
      onCancel={(event) => {
        event.preventDefault();
        props.onClose();
      }}
      onClick={(event) => event.target === element.current && props.onClose()}
    >
      <div class="dialog-body">
        {place !== "top" && (
          <header>
            <h2>{props.title}</h2>
            <button type="button" class="dialog-close" aria-label={common.value.close} onClick={props.onClose}>
              ×
            </button>
          </header>
        )}
        {props.children}
        {props.actions && <footer>{props.actions}</footer>}
      </div>
    </dialog>
  );
}

/** Ask before an action that is hard to undo. */
export function Confirm(props: {
  title: string;
  action: string;
  onYes: () => void;
  onNo: () => void;
  children?: ComponentChildren;
}) {
  return (
    <Dialog
      title={props.title}
      onClose={props.onNo}
      actions={
        <>
          <Button onClick={props.onNo}>{common.value.cancel}</Button>
          <Button look="danger" onClick={props.onYes}>
            {props.action}
          </Button>
        </>
      }
    >
      <div>{props.children}</div>
    </Dialog>
  );
}
