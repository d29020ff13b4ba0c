import { useSignal } from "@preact/signals";
import { useCallback, useMemo, useRef } from "preact/hooks";
import { useOperation } from "../../api/cache";
import type { GraphMap, MapNode } from "../../api/types";
import { useShortcuts } from "../../app/keys";
import { titles } from "../../app/pages";
import { go, query, setQuery } from "../../app/router";
import { Badge, Segments, TextField } from "../../ui/controls";
import { bare } from "../../ui/hidden";
import { KindName } from "../../ui/kind";
import { Page } from "../../ui/layout";
import { List } from "../../ui/list";
import { Empty, Show } from "../../ui/states";
import { Text } from "../../ui/text";
import { projectsOf } from "./colours";
import { CONNECTIONS, Filters } from "./filters";
import { canDraw, Picture } from "./picture";
import { Chosen, NodeButton } from "./side";
import { t } from "./strings";
import "./page.css";

const MOST_MATCHES = 8;
/** With fewer connections, a table says more than a picture. */
const FEW_EDGES = 10;

export default function Graph() {
  const asked = query.value;
  const found = useOperation(
    "graph-map",
    { project: asked.get("project") },
    { on: ["memory", "operation"], keep: true },
  );
  const edges = asked.get("edges");
  const map = useMemo(() => found.data && only(found.data, edges), [found.data, edges]);
  const cannotDraw = useSignal(!canDraw());
  const view = asked.get("view") ?? (map && map.edges.length < FEW_EDGES ? "table" : "picture");
  const isTable = view === "table";
  return (
    <Page
      wide
      title={titles.value.graph}
      note={map && t.value.shown(map.nodes.length, map.memories, map.edges.length)}
      actions={
        <Segments
          label={t.value.view}
          value={isTable ? "table" : "picture"}
          options={[
            ["picture", t.value.picture],
            ["table", t.value.table],
          ]}
          onPick={(picked) => setQuery({ view: picked })}
        />
      }
    >
      <Filters />
      {cannotDraw.value && !isTable && <p class="faint">{t.value.cannotDraw}</p>}
      <Show of={found} lines={10}>
        {() =>
          map?.nodes.length ? (
            <Body map={map} asList={isTable || cannotDraw.value} onFailure={() => (cannotDraw.value = true)} />
          ) : (
            <Empty title={t.value.none}>{t.value.noneNote}</Empty>
          )
        }
      </Show>
    </Page>
  );
}

/** Return a graph with one kind of connections, or all. */
function only(map: GraphMap, kind: string | null): GraphMap {
  if (!kind) return map;
  const edges = map.edges.filter(({ rel }) => (CONNECTIONS.find((one) => one === rel) ?? "link") === kind);
  const degrees = new Map<number, number>();
  for (const end of edges.flatMap(({ source, target }) => [source, target])) {
    degrees.set(end, (degrees.get(end) ?? 0) + 1);
  }
  return { ...map, edges, nodes: map.nodes.map((node, at) => ({ ...node, degree: degrees.get(at) ?? 0 })) };
}

function Body({ map, asList, onFailure }: { map: GraphMap; asList: boolean; onFailure: () => void }) {
  const chosen = query.value.get("memory");
  const pick = useCallback((id: string | null) => setQuery({ memory: id }), []);
  const next = (step: number) => {
    const at = map.nodes.findIndex((one) => one.id === chosen);
    pick(map.nodes[Math.max(0, Math.min(map.nodes.length - 1, at + step))]?.id ?? null);
  };
  const keys = [
    { keys: "escape", says: t.value.close, run: () => pick(null) },
    { keys: "enter", says: t.value.open, run: () => chosen && go(`/memories/${chosen}`) },
  ];
  const walk = [
    { keys: "j", says: t.value.next, run: () => next(1) },
    { keys: "k", says: t.value.previous, run: () => next(-1) },
  ];
  useShortcuts(titles.value.graph, asList ? keys : [...walk, ...keys]);
  return (
    <div class="graph">
      <div class="graph-main">
        {asList ? (
          <Rows map={map} onPick={pick} />
        ) : (
          <>
            <Picture map={map} chosen={chosen} onPick={pick} onFailure={onFailure} />
            <Legend map={map} />
          </>
        )}
      </div>
      <aside class="graph-side" aria-label={t.value.side}>
        <Find nodes={map.nodes} onPick={pick} />
        {chosen ? <Chosen map={map} id={chosen} onPick={pick} /> : <p class="faint">{t.value.sideNote}</p>}
      </aside>
    </div>
  );
}

/** The colours of the projects. */
function Legend({ map }: { map: GraphMap }) {
  return (
    <ul class="graph-legend" aria-label={t.value.project}>
      {[...projectsOf(map)].map(([project, token]) => (
        <li key={project}>
          <svg width="9" height="9" aria-hidden="true">
            <circle cx="4.5" cy="4.5" r="4.5" fill={`var(--${token})`} />
          </svg>
          {project ?? t.value.allProjects}
        </li>
      ))}
    </ul>
  );
}

/** Search the picture's memories by words of their subject. */
function Find({ nodes, onPick }: { nodes: readonly MapNode[]; onPick: (id: string) => void }) {
  const words = useSignal("");
  const element = useRef<HTMLDivElement>(null);
  useShortcuts(titles.value.graph, [
    { keys: "f", says: t.value.find, run: () => element.current?.querySelector("input")?.focus() },
  ]);
  const wanted = words.value.toLowerCase().split(/\s+/).filter(Boolean);
  const matches = wanted.length
    ? nodes.filter((one) => wanted.every((word) => one.subject.toLowerCase().includes(word))).slice(0, MOST_MATCHES)
    : [];
  const choose = (id: string) => {
    words.value = "";
    onPick(id);
  };
  return (
    <div ref={element} class="graph-find">
      <TextField
        bare
        type="search"
        label={t.value.find}
        placeholder={t.value.find}
        value={words.value}
        onInput={(event) => (words.value = event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key === "Enter" && matches[0]) choose(matches[0].id);
          if (event.key === "Escape") words.value = "";
        }}
      />
      {wanted.length > 0 && !matches.length && <p class="faint">{t.value.noMatch}</p>}
      <ul class="graph-near">
        {matches.map((one) => (
          <li key={one.id}>
            <NodeButton node={one} onPick={choose} />
          </li>
        ))}
      </ul>
    </div>
  );
}

/** The graph as rows: for keys, screen readers, and browsers without WebGL. */
function Rows({ map, onPick }: { map: GraphMap; onPick: (id: string) => void }) {
  return (
    <List
      label={titles.value.memories}
      items={map.nodes}
      keyOf={(one) => one.id}
      height={36}
      onChoose={(one) => onPick(one.id)}
      render={(one) => (
        <button type="button" class="graph-row" onClick={() => onPick(one.id)}>
          <KindName kind={one.kind} />
          <span class="clip" dir="auto">
            <Text>{bare(one.subject)}</Text>
          </span>
          {!one.trusted && <Badge tone="warn">{t.value.outside}</Badge>}
          <span class="graph-row-facts">{one.project}</span>
          <span class="graph-row-facts">{t.value.degree(one.degree)}</span>
        </button>
      )}
    />
  );
}
