import { computed } from "@preact/signals";
import type { ComponentType } from "preact";
import { me } from "../api/me";
import { texts } from "../i18n/index";
import type { IconName } from "../ui/icon";
import { match } from "./router";

/** The parameters of a page: the parts of its address. */
export interface PageProps {
  params: Record<string, string>;
}

type Loader = () => Promise<{ default: ComponentType<PageProps> }>;

export const titles = texts({
  en: {
    today: "Today",
    memories: "Memories",
    review: "Review",
    sessions: "Sessions",
    chats: "Chats",
    projects: "Projects",
    beliefs: "Beliefs",
    timeline: "Timeline",
    graph: "Graph",
    ask: "Ask",
    dreams: "Dreams",
    settings: "Settings",
  },
  zh: {
    today: "今天",
    memories: "记忆",
    review: "审阅",
    sessions: "会话",
    chats: "对话",
    projects: "项目",
    beliefs: "信念",
    timeline: "时间线",
    graph: "图谱",
    ask: "提问",
    dreams: "整理",
    settings: "设置",
  },
});

export type PageName = keyof typeof titles.value;

interface Route {
  pattern: string;
  page: PageName;
  load: Loader;
}

/** All routes. A page is loaded when it is first shown. */
export const ROUTES: readonly Route[] = [
  { pattern: "/", page: "today", load: () => import("../pages/today/page") },
  { pattern: "/memories", page: "memories", load: () => import("../pages/memories/page") },
  { pattern: "/memories/:id", page: "memories", load: () => import("../pages/memory/page") },
  { pattern: "/review", page: "review", load: () => import("../pages/review/page") },
  { pattern: "/sessions", page: "sessions", load: () => import("../pages/sessions/page") },
  { pattern: "/sessions/:id", page: "sessions", load: () => import("../pages/session/page") },
  { pattern: "/chats", page: "chats", load: () => import("../pages/chats/page") },
  { pattern: "/chats/:id", page: "chats", load: () => import("../pages/chats/page") },
  { pattern: "/projects", page: "projects", load: () => import("../pages/projects/page") },
  { pattern: "/projects/:name", page: "projects", load: () => import("../pages/project/page") },
  { pattern: "/beliefs", page: "beliefs", load: () => import("../pages/beliefs/page") },
  { pattern: "/timeline", page: "timeline", load: () => import("../pages/timeline/page") },
  { pattern: "/graph", page: "graph", load: () => import("../pages/graph/page") },
  { pattern: "/ask", page: "ask", load: () => import("../pages/ask/page") },
  { pattern: "/dreams", page: "dreams", load: () => import("../pages/dreams/page") },
  { pattern: "/settings", page: "settings", load: () => import("../pages/settings/page") },
];

const ENTRIES: readonly (readonly {
  page: PageName;
  key: string;
  icon: IconName;
  plugin?: string;
  written?: true;
}[])[] = [
  [
    { page: "today", key: "t", icon: "today" },
    { page: "ask", key: "a", icon: "ask" },
  ],
  [
    { page: "memories", key: "m", icon: "memories" },
    { page: "sessions", key: "s", icon: "sessions" },
    { page: "chats", key: "h", icon: "chats", plugin: "gateway" },
    { page: "projects", key: "p", icon: "projects" },
    { page: "beliefs", key: "b", icon: "profile" },
    { page: "timeline", key: "l", icon: "timeline" },
    { page: "graph", key: "g", icon: "graph" },
  ],
  [
    { page: "review", key: "r", icon: "review" },
    { page: "dreams", key: "d", icon: "dreams", written: true },
  ],
  [{ page: "settings", key: "o", icon: "settings" }],
];

/** The navigation in groups, without pages of plugins that are not installed. Pages open with `g` and `key`. */
export const navigation = computed(() =>
  ENTRIES.map((group) => group.filter(({ plugin }) => !plugin || me.value?.plugins.includes(plugin))),
);

/** The pages that a writer fills, while there is no writer. */
export const idle = computed(() =>
  me.value && !/^(none)?$/.test(me.value.writer) ? [] : navigation.value.flat().filter(({ written }) => written),
);

/** Return the address of a page. */
export function addressOf(page: PageName): string {
  return page === "today" ? "/" : `/${page}`;
}

/** Return the route of an address and its parameters, or null if there is none. */
export function routeOf(path: string): { route: Route; params: Record<string, string> } | null {
  for (const route of ROUTES) {
    const params = match(route.pattern, path);
    if (params) return { route, params };
  }
  return null;
}
