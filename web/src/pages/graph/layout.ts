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
const TO_PROJECT = 0.3;

/** The last position of each memory, so that filters move no remaining node. */
const known = new Map<string, readonly [number, number]>();

/** Return initial positions: the previous ones, or a spiral around the middle of the memory's project. */
export function firstPlaces({ nodes }: GraphMap): Float32Array {
  const places = new Float32Array(nodes.length * 2);
  const projects = [...new Set(nodes.map(({ project }) => project))];
  const reach = projects.length > 1 ? 16 * Math.sqrt(nodes.length) : 0;
  const counts = projects.map(() => 0);
  nodes.forEach((node, at) => {
    const project = projects.indexOf(node.project);
    const turn = (2 * Math.PI * project) / projects.length;
    const place = counts[project] ?? 0;
    counts[project] = place + 1;
    const before = known.get(node.id);
    const radius = 12 * Math.sqrt(place + 1);
    places[2 * at] = before?.[0] ?? reach * Math.cos(turn) + radius * Math.cos(place * GOLDEN);
    places[2 * at + 1] = before?.[1] ?? reach * Math.sin(turn) + radius * Math.sin(place * GOLDEN);
  });
  return places;
}

/**
 * Lay out the memories in a worker. Each is tied to an invisible node of its project, so projects stay together. `told`
 * receives intermediate positions. Returns the stop function.
 */
export function layOut(map: GraphMap, first: Float32Array, told: (one: Placed) => void): () => void {
  const count = map.nodes.length;
  const kept = map.nodes.filter((one) => known.has(one.id)).length / Math.max(count, 1);
  const worker = new Worker(new URL("./layout.worker.ts", import.meta.url), { type: "module" });
  worker.onmessage = ({ data }: MessageEvent<Placed>) => {
    const places = data.places.slice(0, 2 * count);
    if (data.done === 1) {
      map.nodes.forEach((node, at) => {
        known.set(node.id, [places[2 * at] ?? 0, places[2 * at + 1] ?? 0]);
      });
      worker.terminate();
    }
    told({ places, done: data.done });
  };
  const asked: ToPlace = { ...matrices(map, first), rounds: kept > 0.95 ? 20 : MOST_ROUNDS };
  worker.postMessage(asked, [asked.nodes.buffer, asked.edges.buffer]);
  return () => worker.terminate();
}

/** Return the nodes, then their projects, and the edges, then the ties to the projects. */
function matrices(map: GraphMap, first: Float32Array): Pick<ToPlace, "nodes" | "edges"> {
  const projects = [...new Set(map.nodes.map(({ project }) => project))];
  const count = map.nodes.length;
  const nodes = new Float32Array((count + projects.length) * NODE);
  const put = (at: number, x: number, y: number, mass: number) =>
    nodes.set([x, y, 0, 0, 0, 0, mass, 1, 1, 0], NODE * at);
  projects.forEach((project, index) => {
    const own = map.nodes.flatMap((node, at) => (node.project === project ? [at] : []));
    const middle = (axis: number) => own.reduce((sum, at) => sum + (first[2 * at + axis] ?? 0), 0) / own.length;
    put(count + index, middle(0), middle(1), Math.sqrt(own.length));
  });
  for (const [at, node] of map.nodes.entries()) put(at, first[2 * at] ?? 0, first[2 * at + 1] ?? 0, 1 + node.degree);
  const ties = map.nodes.map(({ project }, at) => [at, count + projects.indexOf(project), TO_PROJECT]);
  const drawn = map.edges.filter((one) => one.source !== one.target).map((one) => [one.source, one.target, 1]);
  const edges = [...drawn, ...ties].flatMap(([from = 0, to = 0, weight = 0]) => [NODE * from, NODE * to, weight]);
  return { nodes, edges: Float32Array.from(edges) };
}
