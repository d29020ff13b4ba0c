import Graph from "graphology";
import Sigma from "sigma";
import type { NodeHoverDrawingFunction, NodeLabelDrawingFunction } from "sigma/rendering";
import type { GraphMap, MapNode } from "../../api/types";
import { bare, plain } from "../../ui/hidden";
import { type Colours, coloursNow, onLook, projectsOf } from "./colours";
import { firstPlaces, layOut } from "./layout";

const MOST_LETTERS = 36;
const MOST_LABELS = 14;
const LABEL_HEIGHT = 14;
const FEW_NODES = 200;
const LINKED_SIZE = 5.2;
const MANY_EDGES = 3_000;
const PROJECT = "project:";
const SHARED = ["session", "file", "tag"];
const calm = matchMedia("(prefers-reduced-motion: reduce)");

/** Draws a graph in an element, moves and highlights nodes, and reports clicks. */
export class Drawing {
  private readonly sigma: Sigma;
  private colours: Colours = coloursNow();
  private map: GraphMap = { nodes: [], edges: [], memories: 0, links: 0 };
  private projects = new Map<string | null, string>();
  private chosen: string | null = null;
  private near = new Set<string>();
  /** The labels of this frame, so that none covers another. */
  private labels: { left: number; width: number; y: number }[] = [];
  private endLayout = () => {};
  private readonly endLook: () => void;

  constructor(
    element: HTMLElement,
    private readonly words: { outside: string; allProjects: string },
    onPick: (id: string | null) => void,
    private readonly onDone: (share: number) => void,
  ) {
    this.sigma = new Sigma(new Graph({ multi: true, type: "directed" }), element, {
      allowInvalidContainer: true,
      defaultDrawNodeLabel: (context, data, settings) => this.label(context, data, settings),
      defaultDrawNodeHover: (context, data, settings) => this.hover(context, data, settings),
      labelFont: this.colours.font,
      labelSize: 12,
      labelDensity: 1,
      labelGridCellSize: 70,
      stagePadding: 32,
      minCameraRatio: 0.02,
      maxCameraRatio: 4,
      zIndex: true,
      nodeReducer: (id, data) => this.node(id, data),
      edgeReducer: (id, data) => this.edge(id, data),
    });
    this.sigma.on("clickNode", ({ node }) => !node.startsWith(PROJECT) && onPick(node));
    this.sigma.on("beforeRender", () => {
      this.labels = [];
    });
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
    this.projects = projectsOf(map);
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
        graph.addEdge(source.id, target.id, { size: thin, rel: one.rel, color: this.edgeColour(one.rel) });
    }
    for (const project of this.projects.keys()) {
      const label = project ?? this.words.allProjects;
      graph.addNode(PROJECT + project, { x: 0, y: 0, size: 0.01, label, color: "transparent", forceLabel: true });
    }
    this.sigma.setSetting("labelRenderedSizeThreshold", map.nodes.length > FEW_NODES ? scale * LINKED_SIZE : 0);
    this.sigma.setGraph(graph);
    this.nameProjects();
    this.choose(this.chosen);
    this.endLayout = layOut(map, places, ({ places: now, done }) => {
      if (!calm.matches || done === 1) this.move(now);
      this.onDone(done);
    });
  }

  /** Show one memory with its neighbours, and dim all others. */
  choose(id: string | null): void {
    const graph = this.sigma.getGraph();
    this.chosen = id && graph.hasNode(id) ? id : null;
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
        if (at >= places.length / 2) return data;
        data.x = places[2 * at];
        data.y = places[2 * at + 1];
        at++;
        return data;
      },
      { attributes: ["x", "y"] },
    );
    this.nameProjects();
  }

  /** Put the name of each project above its memories. */
  private nameProjects(): void {
    const graph = this.sigma.getGraph();
    for (const project of this.projects.keys()) {
      const own = this.map.nodes.filter((one) => one.project === project).map(({ id }) => graph.getNodeAttributes(id));
      const x = own.reduce((sum, one) => sum + one.x, 0) / own.length;
      const [low, high] = [Math.min(...own.map((one) => one.y)), Math.max(...own.map((one) => one.y))];
      graph.mergeNodeAttributes(PROJECT + project, { x, y: high + 0.08 * (high - low) + 4 });
    }
  }

  private paint(): void {
    const byId = new Map(this.map.nodes.map((one) => [one.id, one]));
    const graph = this.sigma.getGraph();
    graph.updateEachNodeAttributes((id, data) => {
      const node = byId.get(id);
      return { ...data, color: node ? this.colourOf(node) : data.color };
    });
    graph.updateEachEdgeAttributes((_, data) => ({ ...data, color: this.edgeColour(data.rel) }));
  }

  /** Links are darker than a common session, file or tag. */
  private edgeColour(rel: string): string {
    if (this.map.edges.length > MANY_EDGES) return this.colours.of("line");
    return this.colours.of(SHARED.includes(rel) ? "line-strong" : "ink-faint");
  }

  private labelOf(node: MapNode): string {
    const subject = plain(bare(node.subject));
    const short = subject.length > MOST_LETTERS ? `${subject.slice(0, MOST_LETTERS)}…` : subject;
    return node.trusted ? short : `${short} (${this.words.outside})`;
  }

  private colourOf(node: MapNode): string {
    return this.colours.of(this.projects.get(node.project) ?? "other");
  }

  private node(id: string, data: object) {
    if (!this.near.size || id.startsWith(PROJECT)) return data;
    if (!this.near.has(id)) return { ...data, color: this.colours.of("line"), label: null, zIndex: 0 };
    const isChosen = id === this.chosen;
    return { ...data, zIndex: 1, forceLabel: this.near.size <= MOST_LABELS || isChosen, highlighted: isChosen };
  }

  private edge(id: string, data: object) {
    if (!this.near.size) return data;
    const isNear = this.chosen !== null && this.sigma.getGraph().hasExtremity(id, this.chosen);
    if (isNear) return { ...data, color: this.colours.of("ink-faint"), size: 1.6, zIndex: 1 };
    return { ...data, color: this.colours.of("line"), size: 0.3 };
  }

  /** Draw a label with an outline, readable over edges and nodes. */
  private label(...[context, { key, x, y, size, label }, settings]: Parameters<NodeLabelDrawingFunction>): void {
    if (!label) return;
    const isProject = String(key).startsWith(PROJECT);
    context.font = `${isProject ? "600 14px" : `${settings.labelSize}px`} ${settings.labelFont}`;
    const width = context.measureText(label).width;
    const isLast = x + size + 4 + width > this.sigma.getDimensions().width;
    const left = isLast && x > width + size + 4 ? x - size - 4 - width : x + size + 4;
    const isFree = this.labels.every(
      (one) => Math.abs(one.y - y) > LABEL_HEIGHT || one.left > left + width || left > one.left + one.width,
    );
    if (!isFree && !isProject) return;
    this.labels.push({ left, width, y });
    context.lineWidth = 3;
    context.lineJoin = "round";
    context.strokeStyle = this.colours.of("surface");
    context.strokeText(label, left, y + 4);
    context.fillStyle = this.colours.of("ink");
    context.fillText(label, left, y + 4);
  }

  private hover(...[context, data, settings]: Parameters<NodeHoverDrawingFunction>): void {
    const { x, y, size, color, label } = data;
    context.beginPath();
    context.arc(x, y, size + 3, 0, Math.PI * 2);
    context.fillStyle = this.colours.of("surface");
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
    context.fillStyle = this.colours.of("surface");
    context.fill();
    context.strokeStyle = this.colours.of("line-strong");
    context.stroke();
    context.fillStyle = this.colours.of("ink");
    context.fillText(label, x + size + 12, y + 4);
  }
}
