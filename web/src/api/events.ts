import { signal } from "@preact/signals";
import { loadMe, refusal } from "./me";

/** An event of the daemon. Other fields depend on its kind. */
export interface NacreEvent {
  kind: string;
  [field: string]: unknown;
}

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
    document.addEventListener("visibilitychange", () => {
      wasLost = true;
      if (document.hidden) source?.close();
      else connect();
    });
    connect();
    return;
  }
  channel.onmessage = (message) => hear(message.data);
  channel.postMessage({ asks: true });
  void navigator.locks.request(NAME, () => {
    leads = true;
    wasLost = connection.peek() !== "connecting"; // events between two leading tabs are lost
    connect();
    return new Promise(() => {});
  });
}

function connect(): void {
  source?.close();
  if (!channel && document.hidden) return;
  source = new EventSource("/api/v1/events");
  source.onopen = opened;
  source.onerror = lost;
  source.onmessage = ({ data }) => pass(data);
}

function opened(): void {
  announce("live");
  wait = 500;
  if (wasLost) pass('{"kind":"missed"}');
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
  channel?.postMessage({ state });
}

function pass(data: string): void {
  receive(data);
  channel?.postMessage({ data });
}

/** Handle a message of another tab. */
async function hear({ asks, state, data }: { asks?: boolean; state?: State; data?: string }): Promise<void> {
  if (leads) {
    if (asks) announce(connection.value);
  } else if (state) {
    if (state !== "live") await loadMe();
    connection.value = state;
  } else if (data) {
    receive(data);
  }
}

function receive(data: string): void {
  const event: NacreEvent = JSON.parse(data);
  for (const listener of listeners) listener(event);
}
