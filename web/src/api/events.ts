import { signal } from "@preact/signals";
import { loadMe, refusal } from "./me";

/** An event of the daemon. Other fields depend on its kind. */
export interface NacreEvent {
  seq: number;
  at: string;
  kind: string;
  [field: string]: unknown;
}

export const KINDS = [
  "memory",
  "session",
  "chat",
  "progress",
  "doubt",
  "candidate",
  "operation",
  "cost",
  "trace",
  "notice",
  "missed",
  "hello",
] as const;

type Listener = (event: NacreEvent) => void;
type State = "connecting" | "live" | "lost";

/** `live`: connected; `lost`: the daemon does not answer and is retried. */
export const connection = signal<State>("connecting");

const listeners = new Set<Listener>();
const LONGEST_WAIT = 10_000;
const NAME = "nacre-events";
const channel = navigator.locks && "BroadcastChannel" in window ? new BroadcastChannel(NAME) : null;
let leads = false;
let source: EventSource | null = null;
let wait = 500;
let last = "";
let epoch = "";
let wasLost = false;

/** Call a function with each event. Returns the unsubscribe function. */
export function onEvent(listener: Listener): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/**
 * Follow the daemon's events. Tabs share one stream, because browsers open only six connections to a host: the tab with
 * the lock forwards events, and another tab takes over when it closes. Without locks, hidden tabs have no stream.
 */
export function follow(): void {
  if (!channel) {
    document.addEventListener("visibilitychange", () => (document.hidden ? source?.close() : connect()));
    connect();
    return;
  }
  channel.onmessage = (message) => hear(message.data);
  channel.postMessage({ asks: true });
  void navigator.locks.request(NAME, () => {
    leads = true;
    connect();
    return new Promise(() => {});
  });
}

function connect(): void {
  source?.close();
  if (!channel && document.hidden) return;
  source = new EventSource(`/api/v1/events${last ? `?after=${encodeURIComponent(last)}` : ""}`);
  source.onopen = opened;
  source.onerror = lost;
  for (const kind of KINDS) {
    source.addEventListener(kind, (message) =>
      pass(kind, (message as MessageEvent).data, (message as MessageEvent).lastEventId),
    );
  }
}

function opened(): void {
  announce("live");
  wait = 500;
  if (wasLost) pass("missed", '{"seq":0,"at":""}', "");
  wasLost = false;
}

async function lost(): Promise<void> {
  source?.close();
  wasLost = true;
  await loadMe();
  announce(refusal.value ? "lost" : "connecting");
  setTimeout(connect, wait);
  wait = Math.min(wait * 2, LONGEST_WAIT);
}

function announce(state: State): void {
  connection.value = state;
  channel?.postMessage({ state, last, epoch });
}

function pass(kind: string, data: string, id: string): void {
  receive(kind, data, id);
  channel?.postMessage({ kind, data, id });
}

/** Handle a message of another tab. */
async function hear(said: { asks?: boolean; state?: State; [field: string]: unknown }): Promise<void> {
  if (leads) {
    if (said.asks) announce(connection.value);
  } else if (said.state) {
    if (said.state !== "live") await loadMe();
    connection.value = said.state;
    last = String(said.last) || last;
    epoch = String(said.epoch) || epoch;
  } else if (said.kind) {
    receive(String(said.kind), String(said.data), String(said.id));
  }
}

function receive(kind: string, data: string, id: string): void {
  const event: NacreEvent = { ...JSON.parse(data), kind };
  if (id) last = id;
  if (kind === "hello" && epoch && event.epoch !== epoch) tell({ ...event, kind: "missed" });
  if (kind === "hello") epoch = String(event.epoch);
  tell(event);
}

function tell(event: NacreEvent): void {
  for (const listener of listeners) listener(event);
}
