import { useMemo } from "preact/hooks";
import { useOperation } from "../../api/cache";
import type { GraphMap, MapNode } from "../../api/types";
import { Button } from "../../ui/controls";
import { bare } from "../../ui/hidden";
import { KindMark, KindName } from "../../ui/kind";
import { Facts } from "../../ui/layout";
import { Markdown } from "../../ui/markdown";
import { Show } from "../../ui/states";
import { Origin, Text } from "../../ui/text";
import { day } from "../../ui/time";
import { t } from "./strings";

interface Neighbour {
  node: MapNode;
  rel: string;
  isOutgoing: boolean;
}

/** The selected memory with its links. */
export function Chosen(props: { map: GraphMap; id: string; onPick: (id: string | null) => void }) {
  const view = useOperation("look", { reference: props.id, update: false });
  const near = useMemo(() => neighboursOf(props.map, props.id), [props.map, props.id]);
  return (
    <Show of={view} lines={6}>
      {({ memory }) => (
        <article class="graph-chosen">
          <header>
            <h2 dir="auto">
              <Text>{bare(memory.subject)}</Text>
            </h2>
            <Button look="quiet" shortcut="Esc" onClick={() => props.onPick(null)}>
              {t.value.close}
            </Button>
          </header>
          <Origin trust={memory.trust} proposed={memory.proposed}>
            <Markdown>{memory.content}</Markdown>
          </Origin>
          <Facts
            rows={[
              [t.value.kind, <KindName key="kind" kind={memory.kind} />],
              [t.value.project, memory.project],
              [t.value.since, day(memory.valid.since ?? memory.created)],
            ]}
          />
          <a class="link" href={`/memories/${memory.id}`}>
            {t.value.open}
          </a>
          <h3>{t.value.neighbours(near.length)}</h3>
          <ul class="graph-near">
            {near.map(({ node, rel, isOutgoing }) => (
              <li key={`${node.id} ${rel} ${isOutgoing}`}>
                <span class="graph-rel">
                  {isOutgoing ? "→" : "←"} {t.value.relations[rel] ?? rel}
                </span>
                <NodeButton node={node} onPick={props.onPick} />
              </li>
            ))}
          </ul>
        </article>
      )}
    </Show>
  );
}

/** A selectable memory. */
export function NodeButton({ node, onPick }: { node: MapNode; onPick: (id: string) => void }) {
  return (
    <button type="button" class="graph-node" onClick={() => onPick(node.id)}>
      <KindMark kind={node.kind} />
      <span dir="auto">
        <Text>{bare(node.subject)}</Text>
      </span>
      {!node.trusted && <span class="badge warn">{t.value.outside}</span>}
    </button>
  );
}

function neighboursOf({ nodes, edges }: GraphMap, id: string): Neighbour[] {
  const at = nodes.findIndex((one) => one.id === id);
  const found: Neighbour[] = [];
  for (const { source, target, rel } of edges) {
    if (source !== at && target !== at) continue;
    const node = nodes[source === at ? target : source];
    if (node) found.push({ node, rel, isOutgoing: source === at });
  }
  return found;
}
