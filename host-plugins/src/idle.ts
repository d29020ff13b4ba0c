/** Keys of other memory plugins. They are accepted, because OpenClaw rejects a config with unknown keys. */
import { isObject } from "./link.js";

interface Idle {
  keys: string[];
  /** The replacement, or the reason why there is none. */
  instead: string;
  /** Values that match nacre's behaviour. */
  fits?: unknown[];
}

export const IDLE: Idle[] = [
  { keys: ["agenrPath"], instead: "nacre.json next to the plugin contains nacre's path" },
  { keys: ["dbPath", "dataDir", "memoryDir"], instead: "use home, the path of nacre's home; memories are Markdown files in its vault" },
  { keys: ["sessionsDir"], instead: "nacre finds OpenClaw's sessions; nacre config set ingest.roots adds folders" },
  { keys: ["handoff.includeBackground"], instead: "every session leaves a handoff, and a new session receives all pending handoffs", fits: [false] },
  { keys: ["handoff.logEnabled", "handoff.logDir"], instead: "use nacre writer traces --task handoff", fits: [false] },
  { keys: ["captureStrategy"], instead: "nacre reads whole sessions, because a turn depends on earlier turns", fits: ["full_session"] },
  { keys: ["includeAssistant"], instead: "nacre reads the agent's words and the user's, and records the speaker of each", fits: [true] },
  { keys: ["heartbeatBatchSize", "autoIndexIntervalMinutes", "indexIdleDebounceMs"], instead: "nacre's daemon reads sessions while they are written" },
  { keys: ["autoDreamIntervalMinutes"], instead: "use nacre config set dream.at_night true" },
  { keys: ["uiEnabled", "uiHost", "uiPort", "uiPathPrefix"], instead: "use the nacre command; there are no pages to serve", fits: [false] },
];

/** Return a line for each configured key without effect. */
export function idleKeys(config: unknown): string[] {
  return IDLE.flatMap(({ keys, instead, fits = [] }) => {
    const set = keys.filter((key) => isSet(config, key, fits));
    return set.length ? [`${set.join(", ")} ${set.length > 1 ? "have" : "has"} no effect: ${instead}`] : [];
  });
}

function isSet(config: unknown, key: string, fits: unknown[]): boolean {
  const value = key.split(".").reduce((found, name) => (isObject(found) ? found[name] : undefined), config);
  return value !== undefined && !fits.includes(value);
}
