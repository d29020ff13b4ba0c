import type { NacreValuesModelsStep as Step, Trace } from "../../api/types";
import { number } from "../../i18n/index";

/** Whether a step of it went wrong. */
export function failed(trace: Trace): boolean {
  return trace.steps.some((step) => step.status === "failed");
}

/** What it was about; of what was read the end of its path, which tells files apart. */
export function titleOf(trace: Trace): string {
  return trace.kind === "index" ? trace.subject.split("/").slice(-2).join("/") : trace.subject;
}

/** How long it took, in words; nothing while it runs. */
export function seconds(trace: Trace): string {
  return trace.ended ? duration((Date.parse(trace.ended) - Date.parse(trace.began)) / 1000) : "";
}

/** Seconds, in the unit that fits. */
export function duration(taken: number): string {
  if (taken < 1) return `${number(Math.round(taken * 1000))} ms`;
  return taken < 90 ? `${number(Math.round(taken * 10) / 10)} s` : `${number(Math.round(taken / 60))} min`;
}

/** What a model's step cost, in US dollars; nothing where the price is not known. */
export function dollars(cost: string | null): string {
  return cost === null ? "" : `$${Number(cost).toFixed(Number(cost) < 0.01 ? 4 : 2)}`;
}

/** How many tokens a step read and wrote. */
export function tokens(step: Step): number {
  return Object.values(step.tokens).reduce((sum: number, one) => sum + (typeof one === "number" ? one : 0), 0);
}
