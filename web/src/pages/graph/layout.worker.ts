import iterate from "graphology-layout-forceatlas2/iterate.js";
import type { Placed, ToPlace } from "./layout";

// ForceAtlas2 (Jacomy et al. 2014) in a worker, so that the page stays responsive. Settings as from inferSettings.
const NODE = 10;
const TOLD_EVERY_MS = 160;
const LONGEST_MS = 6_000;

self.onmessage = ({ data }: MessageEvent<ToPlace>) => {
  const { nodes, edges, rounds } = data;
  const count = nodes.length / NODE;
  const settings = {
    linLogMode: false,
    outboundAttractionDistribution: false,
    adjustSizes: false,
    edgeWeightInfluence: 0.5,
    scalingRatio: 10,
    strongGravityMode: true,
    gravity: 0.05,
    slowDown: 1 + Math.log(Math.max(count, 2)),
    barnesHutOptimize: count > 500,
    barnesHutTheta: 0.6,
  };
  const began = performance.now();
  let told = began;
  for (let round = 1; round <= rounds; round++) {
    iterate(settings, nodes, edges);
    const now = performance.now();
    const share = Math.max(round / rounds, (now - began) / LONGEST_MS);
    if (share < 1 && now - told < TOLD_EVERY_MS) continue;
    told = now;
    tell(nodes, count, Math.min(share, 1));
    if (share >= 1) return;
  }
};

function tell(nodes: Float32Array, count: number, done: number): void {
  const places = new Float32Array(count * 2);
  for (let at = 0; at < count; at++) {
    places[2 * at] = nodes[NODE * at] ?? 0;
    places[2 * at + 1] = nodes[NODE * at + 1] ?? 0;
  }
  const message: Placed = { places, done };
  self.postMessage(message, { transfer: [places.buffer] });
}
