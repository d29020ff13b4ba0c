import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import "./combobox.css";

/** A field whose results are chosen while typing. `at` is the index of the chosen result. */
export function Combobox(props: {
  id: string;
  label: string;
  placeholder: string;
  /** The keys of the results, in order. */
  keys: readonly string[];
  at: number;
  onInput: (words: string) => void;
  onChoose: (index: number) => void;
  onOpen: (index: number) => void;
  render: (index: number) => ComponentChildren;
  /** A note above the results. */
  note: string | false;
}) {
  const { id, label, keys, at, onChoose, onOpen } = props;
  const element = useRef<HTMLDivElement>(null);
  useEffect(() => {
    element.current?.querySelector('[aria-selected="true"]')?.scrollIntoView({ block: "nearest" });
  }, [at]);
  const steer = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) onChoose((Math.max(at, step < 0 ? 0 : -1) + step + keys.length) % Math.max(keys.length, 1));
    else if (event.key === "Enter" && !event.isComposing) at >= 0 && onOpen(at);
    else return;
    event.preventDefault();
  };
  return (
    <>
      <input
        class="palette-input"
        type="text"
        role="combobox"
        aria-expanded="true"
        aria-controls={id}
        aria-activedescendant={keys[at] ? `${id}-${keys[at]}` : undefined}
        aria-label={label}
        placeholder={props.placeholder}
        autocomplete="off"
        spellcheck={false}
        onInput={(event) => props.onInput(event.currentTarget.value)}
        onKeyDown={steer}
      />
      <div class="palette-results" id={id} role="listbox" aria-label={label} ref={element}>
        {props.note && <p class="palette-none">{props.note}</p>}
        {keys.map((key, index) => (
          <div
            key={key}
            id={`${id}-${key}`}
            role="option"
            aria-selected={index === at}
            onPointerMove={() => onChoose(index)}
            onClick={() => onOpen(index)}
          >
            {props.render(index)}
          </div>
        ))}
      </div>
    </>
  );
}
