/** nacre's tools for OpenClaw: described by tools.json, run by `nacre mcp`. */
import { readFileSync } from "node:fs";

import type { Config } from "./config.js";
import { isObject, messageOf } from "./link.js";
import type { Servers } from "./server.js";

const CORE = new Set(["memory_search", "memory_get", "memory_store", "memory_retire"]);
const STORES = "memory_store";

interface Described {
  name: string;
  title: string;
  description: string;
  inputSchema: { properties: Record<string, unknown> };
}

/** The origin of a call in OpenClaw. */
export interface Caller {
  workspaceDir?: string | undefined;
}

export interface Tool {
  name: string;
  label: string;
  description: string;
  parameters: any;
  execute: (id: string, params: unknown, signal?: AbortSignal) => Promise<{ content: { type: "text"; text: string }[]; details: object }>;
}

/** The names of the offered tools. OpenClaw's own memory keeps `memory_search` and `memory_get`. */
export function offeredName(name: string, config: Config): string {
  return config.plainNames ? name : `nacre_${name}`;
}

export function readTools(config: Config): Described[] {
  const all: Described[] = JSON.parse(readFileSync(new URL("../tools.json", import.meta.url), "utf8"));
  return all.filter((one) => (config.allTools || CORE.has(one.name)) && (config.notes || one.name !== STORES));
}

export function makeTools(described: Described[], config: Config, servers: Servers, caller: Caller): Tool[] {
  return described.map((one) => ({
    name: offeredName(one.name, config),
    label: one.title,
    description: renamed(one.description, config),
    parameters: one.inputSchema,
    execute: async (_id, params, signal) => {
      const given = isObject(params) ? { ...params } : {};
      if (config.deep && one.name === "memory_search") given.deep ??= true;
      if (config.project && "project" in one.inputSchema.properties) given.project ??= config.project;
      try {
        const told = await servers.call(one.name, given, caller.workspaceDir || process.cwd(), signal);
        return { content: [{ type: "text", text: renamed(told.text, config) }], details: { failed: told.failed } };
      } catch (error) {
        const text = `nacre could not be asked (${messageOf(error)}). Go on without it; "nacre admin doctor" tells the person what is wrong.`;
        return { content: [{ type: "text", text }], details: { failed: true } };
      }
    },
  }));
}

/** Replace tool names in nacre's answers with the names offered to the agent. */
function renamed(told: string, config: Config): string {
  return config.plainNames ? told : told.replace(/(?<![A-Za-z0-9_])memory_(?=(search|get|store|retire|list|extract|sessions|graph|analyze|admin)\b)/g, "nacre_memory_");
}
