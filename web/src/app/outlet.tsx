import { signal } from "@preact/signals";
import { Component, type ComponentChildren, type ComponentType } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { asProblem, Problem } from "../api/client";
import { connection } from "../api/events";
import { Empty, Failure, Skeleton } from "../ui/states";
import { type PageName, type PageProps, ROUTES, routeOf } from "./pages";
import { path } from "./router";
import { t } from "./strings";

type Loaded = ComponentType<PageProps> | Problem;

const loaded = signal<ReadonlyMap<string, Loaded>>(new Map());

/** Preload a page. */
export function preload(page: PageName): void {
  if (connection.peek() === "lost") return;
  for (const route of ROUTES) if (route.page === page) loadPage(route.pattern);
}

/** Load the page of an address before the user is known. */
export function preloadAt(address: string): void {
  const found = routeOf(address);
  if (found) loadPage(found.route.pattern);
}

async function loadPage(pattern: string): Promise<void> {
  const route = ROUTES.find((one) => one.pattern === pattern);
  const known = loaded.peek().get(pattern);
  if (!route || known) return;
  try {
    keep(pattern, (await route.load()).default);
  } catch (error) {
    const note = connection.peek() === "lost" ? t.value.unloaded : asProblem(error).message;
    keep(pattern, new Problem("failed", t.value.failed, note, 0));
  }
}

function keep(pattern: string, page: Loaded): void {
  loaded.value = new Map(loaded.peek()).set(pattern, page);
}

/** The page of the current address. */
export function Outlet() {
  const found = routeOf(path.value);
  const pattern = found?.route.pattern;
  useEffect(() => {
    if (!pattern) return;
    if (loaded.peek().get(pattern) instanceof Problem && connection.peek() === "live") location.reload();
    else loadPage(pattern);
  }, [pattern]);
  if (!found || !pattern) return <Empty title={t.value.notFound}>{t.value.notFoundNote}</Empty>;
  const page = loaded.value.get(pattern);
  if (page instanceof Problem) return <Unloaded problem={page} />;
  if (!page)
    return (
      <div class="page">
        <Skeleton lines={8} />
      </div>
    );
  const Page = page;
  return (
    <Boundary key={path.value}>
      <Page params={found.params} />
    </Boundary>
  );
}

/** A page whose files failed to load. The browser caches the failure, so reload everything when nacre answers. */
function Unloaded({ problem }: { problem: Problem }) {
  const wasLost = useRef(false);
  const state = connection.value;
  useEffect(() => {
    if (state === "lost") wasLost.current = true;
    else if (state === "live" && wasLost.current) location.reload();
  }, [state]);
  return <Failure problem={problem} {...(state === "live" && { retry: () => location.reload() })} />;
}

/** Keeps errors of a page from affecting others. */
class Boundary extends Component<{ children: ComponentChildren }, { problem: Problem | null }> {
  override state = { problem: null };

  override componentDidCatch(error: unknown): void {
    this.setState({ problem: new Problem("failed", t.value.failed, asProblem(error).message, 0) });
  }

  override render() {
    const { problem } = this.state;
    if (problem) return <Failure problem={problem} retry={() => this.setState({ problem: null })} />;
    return this.props.children;
  }
}
