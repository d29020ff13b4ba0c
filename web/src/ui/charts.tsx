import { useSignal } from "@preact/signals";
import type { ComponentChildren, RefObject } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { common } from "../i18n/common";
import { number } from "../i18n/index";
import { barHeights, monthsOf, ticks, weeksOf } from "./scales";
import { day } from "./time";
import "./charts.css";

export interface Series {
  name: string;
  /** A colour of tokens.css, as `var(--fact)`. */
  colour: string;
  values: readonly number[];
}

interface ChartProps {
  title: string;
  /** The heading of rows in the table: "Day". */
  axis: string;
  /** Days (ISO) or other labels, one for each value. */
  labels: readonly string[];
  series: readonly Series[];
  /** Format a number, for example with a currency. */
  format?: (value: number) => string;
  height?: number;
}

const LEFT = 40;
const BOTTOM = 20;
const TOP = 8;

/** A chart with a title, and its numbers as a table. */
export function Figure(props: {
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
        <button
          type="button"
          class="figure-switch"
          onClick={() => {
            isTable.value = !isTable.value;
          }}
        >
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

/** Stacked bars. */
export function BarChart(props: ChartProps) {
  const { labels, series, format = number, height = 168 } = props;
  const element = useRef<HTMLDivElement>(null);
  const width = useWidth(element);
  const at = useSignal(-1);
  const sums = labels.map((_, index) => series.reduce((sum, one) => sum + (one.values[index] ?? 0), 0));
  const marks = ticks(Math.max(...sums, 0));
  const room = height - TOP - BOTTOM;
  const step = (width - LEFT) / Math.max(labels.length, 1);
  const thick = step < 6 ? step : Math.min(step - 2, 34);
  return (
    <Figure {...figure(props, at.value)}>
      <div class="chart" ref={element}>
        <svg width={width} height={height} role="img" aria-label={props.title} onPointerLeave={() => (at.value = -1)}>
          <Grid {...{ marks, width, height, format }} />
          {labels.map((label, index) => (
            <g
              key={label}
              class={at.value === index ? "column here" : "column"}
              onPointerEnter={() => (at.value = index)}
            >
              <rect class="target" x={LEFT + index * step} y={TOP} width={step} height={room} />
              {barHeights(
                series.map((one) => one.values[index] ?? 0),
                marks.at(-1) ?? 1,
                room,
              ).map(([y, size], part) =>
                size ? (
                  <rect
                    key={series[part]?.name}
                    x={LEFT + index * step + (step - thick) / 2}
                    y={TOP + y}
                    width={thick}
                    height={size}
                    rx={Math.min(2, thick / 4)}
                    fill={series[part]?.colour}
                  />
                ) : null,
              )}
            </g>
          ))}
          <Labels {...{ labels, width, height }} />
        </svg>
      </div>
    </Figure>
  );
}

/** A calendar of a year, a column a week; higher values are darker. */
export function Calendar(props: {
  title: string;
  axis: string;
  unit: string;
  days: ReadonlyMap<string, number>;
  until: string;
  weeks?: number;
  format?: (value: number) => string;
}) {
  const { days, format = number } = props;
  const element = useRef<HTMLDivElement>(null);
  const width = useWidth(element);
  const at = useSignal<string | null>(null);
  const cell = 14;
  const weeks = weeksOf(props.until, Math.max(4, Math.min(props.weeks ?? 53, Math.floor((width - 2) / cell))));
  const most = Math.max(...days.values(), 1);
  const seen = at.value;
  const table = (
    <Table
      axis={props.axis}
      columns={[props.unit]}
      rows={[...days].filter(([, value]) => value).map(([label, value]) => [day(label), [format(value)]])}
    />
  );
  const legend = <p class="legend">{seen && `${day(seen)}: ${format(days.get(seen) ?? 0)} ${props.unit}`}</p>;
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

function figure({ title, axis, labels, series, format = number }: ChartProps, at: number) {
  const rows = labels.map(
    (label, index) => [named(label), series.map((one) => format(one.values[index] ?? 0))] as const,
  );
  const here = labels[at];
  const legend = (
    <ul class="legend">
      {here !== undefined && <li class="legend-at">{named(here)}</li>}
      {series.map((one) => (
        <li key={one.name}>
          <svg width="8" height="8" aria-hidden="true">
            <circle cx="4" cy="4" r="4" fill={one.colour} />
          </svg>
          {one.name}
          {here !== undefined && <b>{format(one.values[at] ?? 0)}</b>}
        </li>
      ))}
    </ul>
  );
  return { title, legend, table: <Table axis={axis} columns={series.map((one) => one.name)} rows={rows} /> };
}

function Grid(props: { marks: readonly number[]; width: number; height: number; format: (value: number) => string }) {
  const { marks, width, height, format } = props;
  const room = height - TOP - BOTTOM;
  const top = marks.at(-1) || 1;
  return (
    <>
      {marks.map((mark) => {
        const y = TOP + room - (mark / top) * room;
        return (
          <g key={mark}>
            <line class="grid" x1={LEFT} x2={width} y1={y} y2={y} />
            <text class="axis" x={LEFT - 8} y={y + 4} text-anchor="end">
              {format(mark)}
            </text>
          </g>
        );
      })}
    </>
  );
}

/** Labels below the chart, as many as fit. */
function Labels({ labels, width, height }: { labels: readonly string[]; width: number; height: number }) {
  const step = (width - LEFT) / Math.max(labels.length, 1);
  const wide = Math.max(72, 7 * Math.max(...labels.map((label) => named(label).length)));
  const every = Math.max(1, Math.ceil(wide / step));
  return (
    <>
      {labels.map((label, index) =>
        index % every === 0 && LEFT + (index + 0.5) * step + wide / 2 < width + 36 ? (
          <text
            key={label}
            class="axis"
            x={Math.min(LEFT + (index + 0.5) * step, width - wide / 2)}
            y={height - 4}
            text-anchor="middle"
          >
            {named(label)}
          </text>
        ) : null,
      )}
    </>
  );
}

function named(label: string): string {
  return /^\d{4}-\d{2}-\d{2}/.test(label) ? day(label) : label;
}

function useWidth(element: RefObject<HTMLElement | null>): number {
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
