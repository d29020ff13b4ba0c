import { useSignal } from "@preact/signals";
import type { ComponentChildren, RefObject } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { common } from "../i18n/common";
import { number } from "../i18n/index";
import { monthsOf, weeksOf } from "./scales";
import { day } from "./time";
import "./charts.css";

/** A chart with a title, and its numbers as a table. */
function Figure(props: {
  title: string;
  legend?: ComponentChildren;
  table: ComponentChildren;
  children: ComponentChildren;
}) {
  const isTable = useSignal(false);
  return (
    <figure class="figure">
      <figcaption>
        <h3>{props.title}</h3>
        {!isTable.value && props.legend}
        <button type="button" class="figure-switch" onClick={() => (isTable.value = !isTable.value)}>
          {isTable.value ? common.value.asPicture : common.value.asTable}
        </button>
      </figcaption>
      {isTable.value ? (
        <div class="figure-table" tabIndex={0}>
          {props.table}
        </div>
      ) : (
        props.children
      )}
    </figure>
  );
}

/** A calendar of a year, a column a week; higher values are darker. */
export function Calendar(props: {
  title: string;
  axis: string;
  unit: string;
  days: ReadonlyMap<string, number>;
  until: string;
}) {
  const { days } = props;
  const element = useRef<HTMLDivElement>(null);
  const width = useWidth(element);
  const at = useSignal<string | null>(null);
  const cell = 14;
  const weeks = weeksOf(props.until, Math.max(4, Math.min(53, Math.floor((width - 2) / cell))));
  const most = Math.max(...days.values(), 1);
  const seen = at.value;
  const table = (
    <Table
      axis={props.axis}
      columns={[props.unit]}
      rows={[...days].filter(([, value]) => value).map(([label, value]) => [day(label), [number(value)]])}
    />
  );
  const legend = <p class="legend">{seen && `${day(seen)}: ${number(days.get(seen) ?? 0)} ${props.unit}`}</p>;
  return (
    <Figure title={props.title} legend={legend} table={table}>
      <div class="chart" ref={element}>
        <svg
          width={width}
          height={7 * cell + 18}
          role="img"
          aria-label={props.title}
          onPointerLeave={() => (at.value = null)}
        >
          {monthsOf(weeks).map(([label, column]) => (
            <text key={column} class="axis" x={column * cell} y={11}>
              {new Intl.DateTimeFormat(document.documentElement.lang, { month: "short" }).format(
                new Date(`${label}T12:00`),
              )}
            </text>
          ))}
          {weeks.map((week, column) =>
            week.map((one, row) => {
              const value = days.get(one) ?? 0;
              if (one > props.until) return null;
              return (
                <rect
                  key={one}
                  class={value ? "heat" : "heat none"}
                  x={column * cell}
                  y={18 + row * cell}
                  width={cell - 3}
                  height={cell - 3}
                  rx={3}
                  fill-opacity={value ? 0.22 + 0.78 * Math.sqrt(value / most) : 1}
                  onPointerEnter={() => (at.value = one)}
                />
              );
            }),
          )}
        </svg>
      </div>
    </Figure>
  );
}

/** A table of numbers. */
export function Table(props: {
  axis: string;
  columns: readonly string[];
  rows: readonly (readonly [string, readonly string[]])[];
}) {
  return (
    <table class="numbers">
      <thead>
        <tr>
          <th scope="col">{props.axis}</th>
          {props.columns.map((one) => (
            <th key={one} scope="col">
              {one}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {props.rows.map(([label, values]) => (
          <tr key={label}>
            <th scope="row">{label}</th>
            {values.map((value, index) => (
              <td key={props.columns[index]}>{value}</td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** Return the width of an element. */
export function useWidth(element: RefObject<HTMLElement | null>): number {
  const width = useSignal(640);
  useEffect(() => {
    if (!element.current) return;
    const observer = new ResizeObserver(([entry]) => {
      if (entry) width.value = Math.max(240, Math.floor(entry.contentRect.width));
    });
    observer.observe(element.current);
    return () => observer.disconnect();
  }, []);
  return width.value;
}
