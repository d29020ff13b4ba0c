import { useSignal } from "@preact/signals";
import {
  elementScroll,
  observeElementOffset,
  observeElementRect,
  observeWindowOffset,
  observeWindowRect,
  Virtualizer,
  windowScroll,
} from "@tanstack/virtual-core";
import type { ComponentChildren, RefObject } from "preact";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { useShortcuts } from "../app/keys";
import { texts } from "../i18n/index";
import "./list.css";

const t = texts({
  en: { list: "In a list", next: "next", previous: "previous", open: "open" },
  zh: { list: "列表", next: "下一项", previous: "上一项", open: "打开" },
});

interface ListProps<T> {
  label: string;
  /** Rows that are not loaded yet are `undefined`. */
  items: readonly (T | undefined)[];
  keyOf: (item: T) => string;
  /** The usual height of a row in pixels; drawn rows are measured. */
  height: number;
  render: (item: T, isChosen: boolean, index: number) => ComponentChildren;
  /** Enter on the selected row. */
  onOpen?: (item: T) => void;
  /** The row was selected with j or k. */
  onChoose?: (item: T) => void;
  /** The range of drawn rows, for loading. */
  onRange?: (from: number, to: number) => void;
  /** Scroll to this row and select it. */
  at?: number | undefined;
  /** The heading above a row, shown where it differs from that of the row before. */
  groupOf?: (item: T) => string;
  /** The scrolling element, if it is not the window. */
  within?: RefObject<HTMLElement | null>;
}

/** A list of any length that draws only visible rows. `j` and `k` select, Enter opens. */
export function List<T>(props: ListProps<T>) {
  const { items, keyOf } = props;
  const element = useRef<HTMLUListElement>(null);
  const chosen = useSignal(-1);
  const virtual = useVirtual(props, element);
  const rows = virtual.getVirtualItems();
  const [from, to] = [rows[0]?.index ?? 0, rows.at(-1)?.index ?? -1];

  useEffect(() => {
    if (to >= 0) props.onRange?.(from, to);
  }, [from, to, items]);

  useEffect(() => {
    if (props.at === undefined) return;
    chosen.value = props.at;
    virtual.scrollToIndex(props.at, { align: "center" });
  }, [props.at]);

  const choose = (index: number) => {
    const next = Math.max(0, Math.min(items.length - 1, index));
    const item = items[next];
    if (item === undefined) return;
    chosen.value = next;
    virtual.scrollToIndex(next, { align: "auto" });
    // Immediately, so that Enter right after j opens it. Rows that scroll into view are drawn with the next frame.
    if (!focus(next)) requestAnimationFrame(() => focus(next));
    props.onChoose?.(item);
  };
  const focus = (index: number): boolean => {
    const row = element.current?.querySelector<HTMLElement>(`[data-index="${index}"]`);
    const target = row?.querySelector<HTMLElement>("a, button");
    target?.focus({ preventScroll: true });
    return Boolean(target);
  };
  useShortcuts(t.value.list, [
    { keys: "j, arrowdown", says: t.value.next, run: () => choose(chosen.peek() + 1) },
    { keys: "k, arrowup", says: t.value.previous, run: () => choose(chosen.peek() - 1) },
    ...(props.onOpen ? [{ keys: "enter", says: t.value.open, run: () => open() }] : []),
  ]);
  const isFirst = (index: number) => {
    const [before, item] = [items[index - 1], items[index]];
    if (!props.groupOf || !item) return false;
    return index === 0 || (before !== undefined && props.groupOf(before) !== props.groupOf(item));
  };
  const open = () => {
    const item = items[chosen.peek()];
    if (item !== undefined) props.onOpen?.(item);
  };

  return (
    <ul class="list" ref={element} aria-label={props.label} style={{ height: `${virtual.getTotalSize()}px` }}>
      {rows.map((row) => {
        const item = items[row.index];
        const offset = row.start - virtual.options.scrollMargin;
        return (
          <li
            key={item === undefined ? row.index : keyOf(item)}
            data-index={row.index}
            ref={(node) => {
              if (node) virtual.measureElement(node);
            }}
            class={row.index === chosen.value ? "chosen" : undefined}
            aria-setsize={items.length}
            aria-posinset={row.index + 1}
            style={{ transform: `translateY(${offset}px)` }}
          >
            {item === undefined ? (
              <div class="list-unknown" style={{ height: `${props.height}px` }} />
            ) : (
              <>
                {isFirst(row.index) && <h2 class="list-group">{props.groupOf?.(item)}</h2>}
                {props.render(item, row.index === chosen.value, row.index)}
              </>
            )}
          </li>
        );
      })}
    </ul>
  );
}

type AnyVirtualizer = Virtualizer<Element | Window, HTMLElement>;

function useVirtual<T>(props: ListProps<T>, element: RefObject<HTMLElement | null>): AnyVirtualizer {
  const drawn = useSignal(0);
  const kept = useRef<AnyVirtualizer | null>(null);
  const margin = useRef(0);
  const scrolls = props.within
    ? {
        getScrollElement: () => props.within?.current ?? null,
        observeElementRect,
        observeElementOffset,
        scrollToFn: elementScroll,
      }
    : {
        getScrollElement: () => window,
        observeElementRect: observeWindowRect,
        observeElementOffset: observeWindowOffset,
        scrollToFn: windowScroll,
        initialOffset: () => scrollY,
      };
  const options = {
    count: props.items.length,
    estimateSize: () => props.height,
    getItemKey: (index: number) => {
      const item = props.items[index];
      return item === undefined ? index : props.keyOf(item);
    },
    overscan: 8,
    scrollMargin: margin.current,
    onChange: () => {
      drawn.value++;
    },
    ...scrolls,
  } as unknown as AnyVirtualizer["options"];
  kept.current ??= new Virtualizer(options);
  const virtual = kept.current;
  virtual.setOptions(options);
  void drawn.value;

  useLayoutEffect(() => virtual._didMount(), []);
  useLayoutEffect(() => {
    const top = props.within
      ? (element.current?.offsetTop ?? 0)
      : (element.current?.getBoundingClientRect().top ?? 0) + scrollY;
    if (Math.abs(top - margin.current) > 1) {
      margin.current = top;
      drawn.value++;
    }
    virtual._willUpdate();
  });
  return virtual;
}
