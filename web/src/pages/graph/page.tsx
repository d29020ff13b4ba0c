import { useSignal } from "@preact/signals";
import { useCallback, useRef } from "preact/hooks";
import { useOperation } from "../../api/cache";
import type { GraphMap, Kind, MapNode } from "../../api/types";
import { useShortcuts } from "../../app/keys";
import { titles } from "../../app/pages";
import { go, query, setQuery } from "../../app/router";
import { Badge, Segments, TextField } from "../../ui/controls";
import { KindMark } from "../../ui/kind";
import { Page } from "../../ui/layout";
import { List } from "../../ui/list";
import { Empty, Show } from "../../ui/states";
import { Text } from "../../ui/text";
import { type Analysis, Found } from "./analysis";
import { AsOf, Filters, Kinds } from "./filters";
import { canDraw, Picture } from "./picture";
import { Chosen, NodeButton } from "./side";
import { t } from "./strings";
import "./page.css";

const ANALYSES: readonly Analysis[] = ["central", "gaps", "components"];
const MOST_MATCHES = 8;

export default function Graph() {
  const asked = query.value;
  const project = asked.get("project");
  const found = useOperation(
    "graph-map",
    {
      project,
      kinds: (asked.get("kinds")?.split(",") ?? []) as Kind[],
      relations: asked.get("relation") ? [asked.get("relation") ?? ""] : [],
      alike: asked.has("alike"),
      as_of: asked.get("as_of"),
      limit: Number(asked.get("limit")) || 1000,
    },
    { on: ["memory", "operation"], keep: true },
  );
  const isTable = asked.get("view") === "table";
  return (
    <Page
      wide
      title={titles.value.graph}
      note={found.data && t.value.shown(found.data.nodes.length, found.data.memories, found.data.links)}
      actions={
        <Segments
          label={t.value.view}
          value={isTable ? "table" : "picture"}
          options={[
            ["picture", t.value.picture],
            ["table", t.value.table],
          ]}
          onPick={(picked) => setQuery({ view: picked === "table" ? picked : null })}
        />
      }
    >
      <Filters relations={found.data ? relationsOf(found.data) : []} />
      <Show of={found} lines={10}>
        {(map) => <Body map={map} isTable={isTable} project={project} />}
      </Show>
    </Page>
  );
}

function Body({ map, isTable, project }: { map: GraphMap; isTable: boolean; project: string | null }) {
  const cannotDraw = useSignal(!canDraw());
  const lit = useSignal<ReadonlySet<string>>(new Set());
  const chosen = query.value.get("memory");
  const analysis = ANALYSES.find((one) => one === query.value.get("find"));
  const pick = useCallback((id: string | null) => setQuery({ memory: id }), []);
  const light = useCallback((ids: ReadonlySet<string>) => {
    lit.value = ids;
  }, []);
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
  const asList = isTable || cannotDraw.value;
  useShortcuts(titles.value.graph, asList ? keys : [...walk, ...keys]);
  if (!map.nodes.length) {
    return (
      <div class="graph-main">
        <Empty title={t.value.none}>{t.value.noneNote}</Empty>
        <Kinds />
        <AsOf />
      </div>
    );
  }
  return (
    <div class="graph">
      <div class="graph-main">
        {cannotDraw.value && !isTable && <p class="graph-note">{t.value.cannotDraw}</p>}
        {asList ? (
          <Rows map={map} onPick={pick} />
        ) : (
          <Picture
            map={map}
            chosen={chosen}
            lit={lit.value}
            onPick={pick}
            onFailure={() => (cannotDraw.value = true)}
          />
        )}
        {!asList && (
          <>
            <Kinds />
            <AsOf />
          </>
        )}
      </div>
      <aside class="graph-side" aria-label={t.value.side}>
        <Find nodes={map.nodes} onPick={pick} />
        {chosen ? (
          <Chosen map={map} id={chosen} onPick={pick} />
        ) : (
          <>
            <Segments
              label={t.value.analysis}
              value={analysis ?? ""}
              options={[["", t.value.noAnalysis], ...ANALYSES.map((one) => [one, t.value.analyses[one]] as const)]}
              onPick={(picked) => setQuery({ find: picked })}
            />
            {analysis ? (
              <Found what={analysis} project={project} onPick={pick} onLight={light} />
            ) : (
              <p class="graph-note">{map.edges.length ? t.value.sideNote : t.value.noLinksNote}</p>
            )}
          </>
        )}
      </aside>
    </div>
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
      {wanted.length > 0 && !matches.length && <p class="graph-note">{t.value.noMatch}</p>}
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
      height={40}
      onChoose={(one) => onPick(one.id)}
      render={(one) => (
        <button type="button" class="graph-row" onClick={() => onPick(one.id)}>
          <KindMark kind={one.kind} />
          <span dir="auto">
            <Text>{one.subject}</Text>
          </span>
          {!one.trusted && <Badge tone="warn">{t.value.outside}</Badge>}
          <span class="graph-row-facts">{one.project}</span>
          <span class="graph-row-facts">{t.value.degree(one.degree)}</span>
        </button>
      )}
    />
  );
}

function relationsOf({ edges }: GraphMap): string[] {
  return [...new Set(edges.map((one) => one.rel))].toSorted();
}
