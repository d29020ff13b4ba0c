import type { ComponentChildren, JSX } from "preact";
import { useId } from "preact/hooks";
import { common } from "../i18n/common";
import "./controls.css";

type ButtonProps = Omit<JSX.IntrinsicElements["button"], "icon" | "size"> & {
  look?: "plain" | "primary" | "quiet" | "danger";
  /** A key with the same action, shown next to the label. */
  shortcut?: string;
};

/** A button. At most one on a page is `primary`; `danger` is for actions that are hard to undo. */
export function Button({ look = "plain", shortcut, class: more, children, ...rest }: ButtonProps) {
  return (
    <button type="button" {...rest} class={`button ${look} ${more ?? ""}`}>
      {children}
      {shortcut && <Key>{shortcut}</Key>}
    </button>
  );
}

/** A key of the keyboard. */
export function Key({ children }: { children: ComponentChildren }) {
  return (
    <kbd class="key" aria-hidden="true">
      {children}
    </kbd>
  );
}

type Tone = "neutral" | "good" | "warn" | "bad" | "accent";

/** A label for a kind or state. */
export function Badge({ tone = "neutral", children }: { tone?: Tone; children: ComponentChildren }) {
  return <span class={`badge ${tone}`}>{children}</span>;
}

/** A filter in words, removed by a click. */
export function Chip({ onRemove, children }: { onRemove: () => void; children: ComponentChildren }) {
  return (
    <button type="button" class="chip" onClick={onRemove}>
      {children}
      <span class="sr-only"> – {common.value.remove}</span>
      <span aria-hidden="true">×</span>
    </button>
  );
}

interface FieldProps {
  label: string;
  hint?: string | undefined;
  error?: string | undefined;
  /** Hide the label except for screen readers. */
  bare?: boolean;
}

function Labelled(props: FieldProps & { id: string; children: ComponentChildren }) {
  const { label, hint, error, bare, id, children } = props;
  return (
    <div class="field">
      <label for={id} class={bare ? "sr-only" : "field-label"}>
        {label}
      </label>
      {children}
      {error ? <p class="field-error">{error}</p> : hint && <p class="field-hint">{hint}</p>}
    </div>
  );
}

/** A single-line text field. */
export function TextField(props: FieldProps & JSX.IntrinsicElements["input"]) {
  const { label, hint, error, bare, ...rest } = props;
  const id = useId();
  return (
    <Labelled {...{ label, hint, error, id }} bare={bare ?? false}>
      <input
        type="text"
        autocomplete="off"
        spellcheck={false}
        {...rest}
        id={id}
        aria-invalid={error ? "true" : undefined}
      />
    </Labelled>
  );
}

/** A multi-line text field. */
export function TextArea(props: FieldProps & JSX.IntrinsicElements["textarea"]) {
  const { label, hint, error, bare, ...rest } = props;
  const id = useId();
  return (
    <Labelled {...{ label, hint, error, id }} bare={bare ?? false}>
      <textarea {...rest} id={id} aria-invalid={error ? "true" : undefined} />
    </Labelled>
  );
}

/** A selection of one value. */
export function Select(
  props: FieldProps & {
    value: string;
    options: readonly (readonly [value: string, text: string])[];
    onPick: (value: string) => void;
  },
) {
  const { label, hint, error, bare, value, options, onPick } = props;
  const id = useId();
  return (
    <Labelled {...{ label, hint, error, id }} bare={bare ?? false}>
      <select id={id} value={value} onChange={(event) => onPick(event.currentTarget.value)}>
        {options.map(([one, text]) => (
          <option key={one} value={one} selected={one === value}>
            {text}
          </option>
        ))}
      </select>
    </Labelled>
  );
}

/** A row of values, one of which is selected. */
export function Segments<T extends string>(props: {
  label: string;
  value: T;
  options: readonly (readonly [value: T, text: string])[];
  onPick: (value: T) => void;
}) {
  return (
    <fieldset class="segments">
      <legend class="sr-only">{props.label}</legend>
      {props.options.map(([one, text]) => (
        <button key={one} type="button" aria-pressed={one === props.value} onClick={() => props.onPick(one)}>
          {text}
        </button>
      ))}
    </fieldset>
  );
}

/** The end of an edit form; Ctrl-Enter also saves. */
export function SaveOrCancel({ isSaving, onCancel }: { isSaving: boolean; onCancel: () => void }) {
  return (
    <div class="buttons">
      <Button look="primary" type="submit" disabled={isSaving} shortcut="Ctrl ↵">
        {common.value.save}
      </Button>
      <Button look="quiet" onClick={onCancel}>
        {common.value.cancel}
      </Button>
    </div>
  );
}
