import type { GraphMap } from "../../api/types";

/** The worker's input: matrices for ForceAtlas2. */
export interface ToPlace {
  nodes: Float32Array;
  edges: Float32Array;
  rounds: number;
}

/** The worker's progress: two numbers for each node, and the share of finished work. */
export interface Placed {
  places: Float32Array;
  done: number;
}

const NODE = 10;
const MOST_ROUNDS = 300;
const GOLDEN = Math.PI * (3 - Math.sqrt(5));

/** The last position of each memory, so that filters move no remaining node. */
const known = new Map<string, readonly [number, number]>();

/** Return initial positions: the previous ones, or a spiral with the most linked memories in the middle. */
export function firstPlaces({ nodes }: GraphMap): Float32Array {
  const places = new Float32Array(nodes.length * 2);
  nodes.forEach((node, at) => {
    const before = known.get(node.id);
    const radius = 12 * Math.sqrt(at + 1);
    places[2 * at] = before?.[0] ?? radius * Math.cos(at * GOLDEN);
    places[2 * at + 1] = before?.[1] ?? radius * Math.sin(at * GOLDEN);
  });
  return places;
}

/** Lay out the linked memories in a worker. `told` receives intermediate positions. Returns the stop function. */
export function layOut(map: GraphMap, first: Float32Array, told: (one: Placed) => void): () => void {
  const ends = new Set(map.edges.flatMap((one) => [one.source, one.target]));
  const linked = [...ends].toSorted((one, other) => one - other);
  const rank = new Map(linked.map((at, index) => [at, index]));
  const kept = map.nodes.filter((one) => known.has(one.id)).length / Math.max(map.nodes.length, 1);
  const rounds = kept > 0.95 ? 20 : MOST_ROUNDS;
  if (!linked.length) {
    told({ places: ringed(map.nodes.length, first, linked), done: 1 });
    return () => {};
  }
  const worker = new Worker(new URL("./layout.worker.ts", import.meta.url), { type: "module" });
  worker.onmessage = ({ data }: MessageEvent<Placed>) => {
    const places = first.slice();
    linked.forEach((at, index) => {
      places[2 * at] = data.places[2 * index] ?? 0;
      places[2 * at + 1] = data.places[2 * index + 1] ?? 0;
    });
    const all = ringed(map.nodes.length, places, linked);
    if (data.done === 1) {
      map.nodes.forEach((node, at) => {
        known.set(node.id, [all[2 * at] ?? 0, all[2 * at + 1] ?? 0]);
      });
      worker.terminate();
    }
    told({ places: all, done: data.done });
  };
  const asked: ToPlace = { nodes: nodeMatrix(map, first, linked), edges: edgeMatrix(map, rank), rounds };
  worker.postMessage(asked, [asked.nodes.buffer, asked.edges.buffer]);
  return () => worker.terminate();
}

function nodeMatrix({ nodes }: GraphMap, first: Float32Array, linked: readonly number[]): Float32Array {
  const matrix = new Float32Array(linked.length * NODE);
  linked.forEach((at, index) => {
    matrix[NODE * index] = first[2 * at] ?? 0;
    matrix[NODE * index + 1] = first[2 * at + 1] ?? 0;
    matrix[NODE * index + 6] = 1 + (nodes[at]?.degree ?? 0);
    matrix[NODE * index + 7] = 1;
    matrix[NODE * index + 8] = 1;
  });
  return matrix;
}

function edgeMatrix({ edges }: GraphMap, rank: ReadonlyMap<number, number>): Float32Array {
  const drawn = edges.filter((one) => one.source !== one.target);
  const matrix = new Float32Array(drawn.length * 3);
  drawn.forEach((one, index) => {
    matrix[3 * index] = NODE * (rank.get(one.source) ?? 0);
    matrix[3 * index + 1] = NODE * (rank.get(one.target) ?? 0);
    matrix[3 * index + 2] = one.strength || 0.1;
  });
  return matrix;
}

/** Place memories without links in rings around the others. */
function ringed(count: number, places: Float32Array, linked: readonly number[]): Float32Array {
  const inside = new Set(linked);
  let reach = 0;
  for (const at of linked) reach = Math.max(reach, Math.hypot(places[2 * at] ?? 0, places[2 * at + 1] ?? 0));
  const outside = Array.from({ length: count }, (_, at) => at).filter((at) => !inside.has(at));
  const gap = Math.max(14, reach / 18);
  for (let radius = reach + 2 * gap; outside.length; radius += gap) {
    const ring = outside.splice(0, Math.floor((2 * Math.PI * radius) / gap));
    ring.forEach((at, index) => {
      const angle = (2 * Math.PI * index) / ring.length;
      places[2 * at] = radius * Math.cos(angle);
      places[2 * at + 1] = radius * Math.sin(angle);
    });
  }
  return places;
}
