import Graph from "graphology";
import Sigma from "sigma";
import type { NodeHoverDrawingFunction, NodeLabelDrawingFunction } from "sigma/rendering";
import type { GraphMap, MapNode } from "../../api/types";
import { plain } from "../../ui/hidden";
import { type Colours, coloursNow, onLook } from "./colours";
import { firstPlaces, layOut } from "./layout";

const MOST_LETTERS = 36;
const MOST_LABELS = 14;
const LINKED_SIZE = 5.2;
const MANY_EDGES = 3_000;
const calm = matchMedia("(prefers-reduced-motion: reduce)");

/** Draws a graph in an element, moves and highlights nodes, and reports clicks. */
export class Drawing {
  private readonly sigma: Sigma;
  private colours: Colours = coloursNow();
  private map: GraphMap = { nodes: [], edges: [], memories: 0, links: 0 };
  private chosen: string | null = null;
  private lit: ReadonlySet<string> = new Set();
  private near = new Set<string>();
  private endLayout = () => {};
  private readonly endLook: () => void;

  constructor(
    element: HTMLElement,
    private readonly outsideMark: string,
    onPick: (id: string | null) => void,
    private readonly onDone: (share: number) => void,
  ) {
    this.sigma = new Sigma(new Graph({ multi: true, type: "directed" }), element, {
      allowInvalidContainer: true,
      defaultDrawNodeLabel: (context, data, settings) => this.label(context, data, settings),
      defaultDrawNodeHover: (context, data, settings) => this.hover(context, data, settings),
      labelFont: this.colours.font,
      labelSize: 12,
      labelDensity: 0.6,
      labelGridCellSize: 120,
      stagePadding: 32,
      minCameraRatio: 0.02,
      maxCameraRatio: 4,
      zIndex: true,
      nodeReducer: (id, data) => this.node(id, data),
      edgeReducer: (id, data) => this.edge(id, data),
    });
    this.sigma.on("clickNode", ({ node }) => onPick(node));
    this.sigma.on("clickStage", () => onPick(null));
    this.sigma.on("doubleClickNode", ({ preventSigmaDefault }) => preventSigmaDefault());
    this.endLook = onLook(() => {
      this.colours = coloursNow();
      this.paint();
    });
  }

  /** Draw this graph. Existing nodes keep their place. */
  show(map: GraphMap): void {
    this.endLayout();
    const graph = new Graph({ multi: true, type: "directed" });
    const places = firstPlaces(map);
    const scale = Math.min(1, Math.max(0.22, 14 / Math.sqrt(map.nodes.length)));
    const thin = Math.max(0.5, scale * 1.5);
    this.map = map;
    map.nodes.forEach((node, at) => {
      graph.addNode(node.id, {
        x: places[2 * at],
        y: places[2 * at + 1],
        size: scale * Math.min(14, 4 + 1.6 * Math.sqrt(node.degree)),
        label: this.labelOf(node),
        color: this.colourOf(node),
      });
    });
    for (const one of map.edges) {
      const [source, target] = [map.nodes[one.source], map.nodes[one.target]];
      if (source && target)
        graph.addEdge(source.id, target.id, { size: thin * (0.6 + one.strength), color: this.edgeColour(map) });
    }
    this.sigma.setSetting("labelRenderedSizeThreshold", scale * LINKED_SIZE);
    this.sigma.setGraph(graph);
    this.choose(this.chosen, this.lit);
    this.endLayout = layOut(map, places, ({ places: now, done }) => {
      if (!calm.matches || done === 1) this.move(now);
      this.onDone(done);
    });
  }

  /** Show one memory with its neighbours, or highlight some, and dim all others. */
  choose(id: string | null, lit: ReadonlySet<string>): void {
    const graph = this.sigma.getGraph();
    this.chosen = id && graph.hasNode(id) ? id : null;
    this.lit = lit;
    this.near = new Set(this.chosen ? [this.chosen, ...graph.neighbors(this.chosen)] : []);
    this.sigma.refresh({ skipIndexation: true });
  }

  /** Centre a memory. */
  centre(id: string): void {
    const place = this.sigma.getNodeDisplayData(id);
    if (!place) return;
    const camera = this.sigma.getCamera();
    const to = { x: place.x, y: place.y, ratio: Math.min(camera.ratio, 0.5) };
    if (calm.matches) camera.setState(to);
    else camera.animate(to, { duration: 350 });
  }

  /** Zoom in (2), out (0.5), or to all (0). */
  zoom(factor: number): void {
    const camera = this.sigma.getCamera();
    if (!factor) camera.animatedReset({ duration: calm.matches ? 0 : 250 });
    else camera.animate({ ratio: camera.ratio / factor }, { duration: calm.matches ? 0 : 180 });
  }

  /** Move the view by shares of its size. */
  pan(right: number, up: number): void {
    const camera = this.sigma.getCamera();
    camera.setState({ x: camera.x + right * camera.ratio, y: camera.y + up * camera.ratio });
  }

  end(): void {
    this.endLayout();
    this.endLook();
    this.sigma.kill();
  }

  private move(places: Float32Array): void {
    let at = 0;
    this.sigma.getGraph().updateEachNodeAttributes(
      (_, data) => {
        data.x = places[2 * at];
        data.y = places[2 * at + 1];
        at++;
        return data;
      },
      { attributes: ["x", "y"] },
    );
  }

  private paint(): void {
    const byId = new Map(this.map.nodes.map((one) => [one.id, one]));
    const graph = this.sigma.getGraph();
    graph.updateEachNodeAttributes((id, data) => {
      const node = byId.get(id);
      return { ...data, color: node ? this.colourOf(node) : data.color };
    });
    graph.updateEachEdgeAttributes((_, data) => ({ ...data, color: this.edgeColour(this.map) }));
  }

  private edgeColour({ edges }: GraphMap): string {
    return edges.length > MANY_EDGES ? this.colours.faded : this.colours.edge;
  }

  private labelOf(node: MapNode): string {
    const subject = plain(node.subject);
    const short = subject.length > MOST_LETTERS ? `${subject.slice(0, MOST_LETTERS)}…` : subject;
    return node.trusted ? short : `${short} (${this.outsideMark})`;
  }

  private colourOf(node: MapNode): string {
    if (node.state !== "active") return this.colours.edge;
    return node.trusted ? this.colours.kinds[node.kind] : this.colours.outside;
  }

  private node(id: string, data: object) {
    if (!this.near.size && !this.lit.size) return data;
    const isShown = this.near.has(id) || this.lit.has(id);
    if (!isShown) return { ...data, color: this.colours.faded, label: null, zIndex: 0 };
    return {
      ...data,
      zIndex: 1,
      forceLabel: this.near.size + this.lit.size <= MOST_LABELS || id === this.chosen,
      highlighted: id === this.chosen,
    };
  }

  private edge(id: string, data: object) {
    if (!this.near.size && !this.lit.size) return data;
    const [source, target] = this.sigma.getGraph().extremities(id);
    if (this.chosen && (source === this.chosen || target === this.chosen))
      return { ...data, color: this.colours.edgeNear, size: 1.6, zIndex: 1 };
    if (this.lit.has(source) && this.lit.has(target)) return { ...data, color: this.colours.edgeNear, zIndex: 1 };
    return { ...data, color: this.colours.faded, size: 0.3 };
  }

  /** Draw a label with an outline, readable over edges and nodes. */
  private label(...[context, { x, y, size, label }, settings]: Parameters<NodeLabelDrawingFunction>): void {
    if (!label) return;
    context.font = `${settings.labelSize}px ${settings.labelFont}`;
    context.lineWidth = 3;
    context.lineJoin = "round";
    context.strokeStyle = this.colours.surface;
    context.strokeText(label, x + size + 4, y + 4);
    context.fillStyle = this.colours.ink;
    context.fillText(label, x + size + 4, y + 4);
  }

  private hover(...[context, data, settings]: Parameters<NodeHoverDrawingFunction>): void {
    const { x, y, size, color, label } = data;
    context.beginPath();
    context.arc(x, y, size + 3, 0, Math.PI * 2);
    context.fillStyle = this.colours.surface;
    context.fill();
    context.beginPath();
    context.arc(x, y, size, 0, Math.PI * 2);
    context.fillStyle = color;
    context.fill();
    if (!label) return;
    context.font = `500 ${settings.labelSize}px ${settings.labelFont}`;
    const width = context.measureText(label).width;
    context.beginPath();
    context.lineWidth = 1;
    context.roundRect(x + size + 5, y - 11, width + 14, 22, 6);
    context.fillStyle = this.colours.surface;
    context.fill();
    context.strokeStyle = this.colours.edge;
    context.stroke();
    context.fillStyle = this.colours.ink;
    context.fillText(label, x + size + 12, y + 4);
  }
}
