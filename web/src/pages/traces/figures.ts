import type { NacreValuesModelsStep as Step, Trace } from "../../api/types";
import { number } from "../../i18n/index";

/** Return true if a step failed. */
export function failed(trace: Trace): boolean {
  return trace.steps.some((step) => step.status === "failed");
}

/** Return the subject; for reading, the end of the path, which distinguishes files. */
export function titleOf(trace: Trace): string {
  return trace.kind === "index" ? trace.subject.split("/").slice(-2).join("/") : trace.subject;
}

/** Return the duration as text; empty while it runs. */
export function seconds(trace: Trace): string {
  return trace.ended ? duration((Date.parse(trace.ended) - Date.parse(trace.began)) / 1000) : "";
}

/** Format seconds in the best unit. */
export function duration(taken: number): string {
  if (taken < 1) return `${number(Math.round(taken * 1000))} ms`;
  return taken < 90 ? `${number(Math.round(taken * 10) / 10)} s` : `${number(Math.round(taken / 60))} min`;
}

/** Return the cost of a model's step in US dollars; empty if unknown. */
export function dollars(cost: string | null): string {
  return cost === null ? "" : `$${Number(cost).toFixed(Number(cost) < 0.01 ? 4 : 2)}`;
}

/** Return the tokens read and written by a step. */
export function tokens(step: Step): number {
  return Object.values(step.tokens).reduce((sum: number, one) => sum + (typeof one === "number" ? one : 0), 0);
}
