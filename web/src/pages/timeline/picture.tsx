import type { RefObject } from "preact";
import { useShortcuts } from "../../app/keys";
import { language } from "../../i18n/index";
import { plain } from "../../ui/hidden";
import { day } from "../../ui/time";
import { daysBetween, rowsOf } from "./layout";
import type { Point } from "./points";
import { t } from "./strings";

const EDGE = 20;
const HEAD = 76;
const LANE = 30;
const LONGEST_BAR = 46;
const LABEL = 13;
const MONTHS = 200 * 86_400_000;
const TOOLS = ["--fact", "--lesson", "--preference", "--todo", "--relationship", "--event", "--other"];

interface Props {
  project: string;
  from: number;
  to: number;
  decisions: readonly Point[];
  sessions: readonly Point[];
  width: number;
  picture: RefObject<SVGSVGElement | null>;
  onOpen: (point: Point) => void;
}

/** The picture: decisions with their words above, reversals joined to the decisions they replace, sessions below. */
export function Picture({ project, from, to, decisions, sessions, width, picture, onOpen }: Props) {
  const isNarrow = width < 560;
  const most = isNarrow ? 170 : 380;
  const [step, lines] = isNarrow ? [39, 2] : [23, 1];
  const end = endOf(decisions, from, to, width, most);
  const place = (at: number) => EDGE + 6 + ((at - from) / Math.max(to - from, 1)) * (end - EDGE - 12);
  const labels = decisions.map(({ at, words, replaces }) => {
    const x = place(at);
    const text = wrapped(plain(words), Math.min(most, width - EDGE - x - 8), lines);
    const before = replaces?.[0];
    const instead = before && fitting(t.value.replaces(plain(before.words)), Math.min(most, width - EDGE - x - 12), 12);
    return { x, text, instead, wide: Math.max(...text.map((part) => measure(part, LABEL))) + 18 };
  });
  const rows = rowsOf(labels, isNarrow ? 12 : 14);
  const line = HEAD + LANE + (Math.max(0, ...rows.map((row) => (row ?? 0) + 1)) + 0.6) * step;
  const reversals = decisions.flatMap((point) => (point.replaces ?? []).map((old) => [old, point] as const));
  const turn = line + (reversals.length ? LANE + 32 : 0);
  const top = turn + LANE + 14;
  const axis = top + LONGEST_BAR + 10;
  const longest = Math.max(1, ...sessions.map(({ turns = 1 }) => Math.sqrt(turns)));
  const tools = [...new Set(sessions.map(({ tool = "" }) => tool))].toSorted();
  const colourOf = (tool = "") => `var(${TOOLS[Math.min(tools.indexOf(tool), TOOLS.length - 1)] ?? "--other"})`;
  const counts = [decisions.length, reversals.length, sessions.length]
    .map((found, index) => found > 0 && t.value.counts[index]?.(found))
    .filter(Boolean);
  const height = axis + 58;
  useMoves(picture);
  const link = (point: Point, isFirst: boolean) => ({
    href: point.href,
    tabIndex: isFirst ? 0 : -1,
    onClick: (event: MouseEvent) => {
      if (event.metaKey || event.ctrlKey || event.shiftKey) return;
      event.preventDefault();
      onOpen(point);
    },
  });
  return (
    <svg ref={picture} class="timeline-picture" width={width} height={height} viewBox={`0 0 ${width} ${height}`}>
      <title>{`${plain(project)}, ${period(from, to)}`}</title>
      <linearGradient id="timeline-pearl">
        {[0, 32, 62, 100].map((offset, index) => (
          <stop key={offset} offset={`${offset}%`} stop-color={`var(--pearl-${index + 1})`} />
        ))}
      </linearGradient>
      <rect class="timeline-ground" width={width} height={height} />
      <rect width={width} height="5" fill="url(#timeline-pearl)" />
      <text class="timeline-title" x={EDGE} y="38">
        {fitting(plain(project), width - 2 * EDGE, 22)}
      </text>
      <text class="timeline-faint" x={EDGE} y="60">
        {fitting([period(from, to), ...counts].join(" · "), width - 2 * EDGE, 12)}
      </text>
      {daysBetween(from, to, Math.max(2, Math.floor((end - EDGE) / 80))).map((at) => (
        <g key={at}>
          <line class="timeline-grid" x1={place(at)} x2={place(at)} y1={HEAD + 8} y2={axis} />
          <text
            class="timeline-faint"
            x={place(at)}
            y={axis + 18}
            text-anchor={place(at) < EDGE + 24 ? "start" : "middle"}
          >
            {shortDay(at, to - from)}
          </text>
        </g>
      ))}
      <Lane name={t.value.decisions} y={HEAD + LANE - 8} line={line} end={end} />
      {labels.map(({ x }, index) => {
        const row = rows[index];
        const point = decisions[index];
        return (
          row != null &&
          point && (
            <line
              key={point.key}
              class={`timeline-stem ${point.kind}`}
              x1={x}
              x2={x}
              y1={line}
              y2={line - (row + 0.9) * step}
            />
          )
        );
      })}
      {reversals.map(([old, point]) => {
        const [x1, x2] = [place(old.at), place(point.at)];
        return (
          <path
            key={old.key}
            class="timeline-arc"
            d={`M${x1} ${line + 6}C${x1} ${turn + 6} ${x2} ${line + 14} ${x2} ${turn - 8}`}
          />
        );
      })}
      {decisions.map((point, index) => {
        const { x, text, instead } = labels[index] ?? { x: 0, text: [], instead: "" };
        const row = rows[index];
        return (
          <g key={point.key}>
            <a class={`timeline-point ${point.kind}`} {...link(point, index === 0)}>
              <title>{nameOf(point)}</title>
              <circle cx={x} cy={line} r="5.5" />
              {row != null && (
                <text y={line - (row + 0.9) * step + 5} dir="auto">
                  {text.map((part, number) => (
                    <tspan key={part} x={x + 8} dy={number * 16}>
                      {part}
                    </tspan>
                  ))}
                </text>
              )}
              {instead && (
                <>
                  <rect class="timeline-turn" x={x - 5} y={turn - 5} width="10" height="10" rx="2" />
                  <text class="timeline-instead" x={x + 11} y={turn + 4}>
                    {instead}
                  </text>
                </>
              )}
            </a>
          </g>
        );
      })}
      {reversals.length > 0 && <Lane name={t.value.reversals} y={line + 24} end={end} />}
      <Lane name={t.value.sessions} y={turn + 26} line={axis} end={end} />
      {sessions.map((point, index) => {
        const size = 6 + (Math.sqrt(point.turns ?? 1) / longest) * (LONGEST_BAR - 6);
        return (
          <a key={point.key} class="timeline-session" {...link(point, index === 0 && !decisions.length)}>
            <title>{nameOf(point)}</title>
            <rect
              x={place(point.at) - 2.5}
              y={axis - size}
              width="5"
              height={size}
              rx="2"
              fill={colourOf(point.tool)}
            />
          </a>
        );
      })}
      <Legend tools={tools} colourOf={colourOf} y={height - 16} width={width} />
    </svg>
  );
}

function Lane({ name, y, line, end }: { name: string; y: number; line?: number; end: number }) {
  return (
    <>
      <text class="timeline-lane" x={EDGE} y={y}>
        {name}
      </text>
      {line && <line class="timeline-line" x1={EDGE} x2={end} y1={line} y2={line} />}
    </>
  );
}

function Legend(props: { tools: readonly string[]; colourOf: (tool: string) => string; y: number; width: number }) {
  const { tools, colourOf, y, width } = props;
  let x = EDGE;
  return (
    <>
      {tools.map((tool) => {
        const at = x;
        x += measure(tool, 12) + 32;
        if (x > width - 60) return null;
        return (
          <g key={tool}>
            <rect x={at} y={y - 9} width="9" height="9" rx="2" fill={colourOf(tool)} />
            <text class="timeline-faint" x={at + 14} y={y}>
              {tool}
            </text>
          </g>
        );
      })}
      <text class="timeline-faint" x={width - EDGE} y={y} text-anchor="end">
        nacre
      </text>
    </>
  );
}

/** Move the focus from point to point by time; Tab enters and leaves the picture. */
function useMoves(picture: RefObject<SVGSVGElement | null>): void {
  const move = (step: number) => {
    const points = [...(picture.current?.querySelectorAll<SVGAElement>("a") ?? [])];
    const here = points.indexOf(document.activeElement as unknown as SVGAElement);
    points[Math.max(0, Math.min(points.length - 1, here + step))]?.focus();
  };
  useShortcuts(t.value.inPicture, [
    { keys: "j, arrowright", says: t.value.next, run: () => move(1) },
    { keys: "k, arrowleft", says: t.value.previous, run: () => move(-1) },
  ]);
}

/** Return where the axis ends, so that the last labels have room: at most three quarters of a whole label. */
function endOf(decisions: readonly Point[], from: number, to: number, width: number, most: number): number {
  const ends = decisions.map(({ at, words }) => {
    const room = width - 2 * EDGE - 14 - Math.min(most, measure(plain(words), LABEL));
    return EDGE + 12 + room / Math.max((at - from) / (to - from), 0.01);
  });
  return Math.max(width - EDGE - 0.75 * most, Math.min(width - EDGE, ...ends));
}

function nameOf({ kind, at, words }: Point): string {
  return `${t.value[kind]}, ${day(new Date(at).toISOString())}: ${plain(words)}`;
}

/** Return a period in words. */
export function period(from: number, to: number): string {
  const format = new Intl.DateTimeFormat(language.value, { day: "numeric", month: "short", year: "numeric" });
  return format.formatRange(from, to);
}

function shortDay(at: number, span: number): string {
  const long = { month: "short", year: "2-digit" } as const;
  const short = { day: "numeric", month: "short" } as const;
  return new Intl.DateTimeFormat(language.value, span > MONTHS ? long : short).format(at);
}

const pen = document.createElement("canvas").getContext("2d");
const family = getComputedStyle(document.body).fontFamily;

function measure(text: string, size: number): number {
  if (!pen) return text.length * size * 0.55;
  pen.font = `${size}px ${family}`;
  return pen.measureText(text).width;
}

/** Break words into lines of a width. */
function wrapped(words: string, width: number, most: number): string[] {
  const found: string[] = [];
  let rest = words;
  while (rest && found.length < most - 1 && measure(rest, LABEL) > width) {
    const room = fitting(rest, width).length - 1;
    const cut = rest.lastIndexOf(" ", room);
    found.push(rest.slice(0, cut > 0 ? cut : room));
    rest = rest.slice(cut > 0 ? cut + 1 : room);
  }
  return [...found, fitting(rest, width)];
}

/** Return the words that fit a width. */
function fitting(words: string, width: number, size = LABEL): string {
  if (measure(words, size) <= width) return words;
  let [low, high] = [0, words.length];
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (measure(`${words.slice(0, middle).trimEnd()}…`, size) <= width) low = middle;
    else high = middle - 1;
  }
  return `${words.slice(0, low).trimEnd()}…`;
}
