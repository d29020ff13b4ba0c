declare module "graphology-layout-forceatlas2/iterate.js" {
  /** One iteration: ten numbers for each node (position first), three for each edge (node, node, weight). */
  export default function iterate(settings: object, nodes: Float32Array, edges: Float32Array): object;
}
