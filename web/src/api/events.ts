import { signal } from "@preact/signals";
import { loadMe, refusal } from "./me";

/** An event of the daemon; what else it holds depends on its kind. */
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

/** `live`: events arrive; `lost`: the daemon is gone, and is tried again. */
export const connection = signal<"connecting" | "live" | "lost">("connecting");

const listeners = new Set<Listener>();
const LONGEST_WAIT = 10_000;
let source: EventSource | null = null;
let wait = 500;
let last = "";
let epoch = "";
let wasLost = false;

/** Call it with each event. Returns what ends that. */
export function onEvent(listener: Listener): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Follow the daemon's events; after a loss it goes on where it was. */
export function follow(): void {
  source?.close();
  source = new EventSource(`/api/v1/events${last ? `?after=${encodeURIComponent(last)}` : ""}`);
  source.onopen = opened;
  source.onerror = lost;
  for (const kind of KINDS) source.addEventListener(kind, (message) => receive(kind, message as MessageEvent));
}

function opened(): void {
  connection.value = "live";
  wait = 500;
  if (wasLost) tell({ seq: 0, at: "", kind: "missed" });
  wasLost = false;
}

async function lost(): Promise<void> {
  source?.close();
  wasLost = true;
  await loadMe();
  connection.value = refusal.value ? "lost" : "connecting";
  setTimeout(follow, wait);
  wait = Math.min(wait * 2, LONGEST_WAIT);
}

function receive(kind: string, message: MessageEvent): void {
  const event: NacreEvent = { ...JSON.parse(message.data), kind };
  if (message.lastEventId) last = message.lastEventId;
  if (kind === "hello" && epoch && event.epoch !== epoch) tell({ ...event, kind: "missed" });
  if (kind === "hello") epoch = String(event.epoch);
  tell(event);
}

function tell(event: NacreEvent): void {
  for (const listener of listeners) listener(event);
}
