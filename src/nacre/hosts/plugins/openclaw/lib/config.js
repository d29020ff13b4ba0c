// Made of host-plugins/src/config.ts: change that, and run npm run build there.
/** The owner's settings of the plugin in OpenClaw. The plugin's README describes each key. */
import { isObject, text } from "./link.js";
const PROMPT_MS = 150;
const START_MS = 1_500;
const CHARACTERS = 6_000;
export function readConfig(given, patience) {
    const set = isObject(given) ? given : {};
    const budgetMs = number(set.recallBudgetMs, 20, 10_000) ?? patience;
    return {
        enabled: set.enabled !== false,
        recalls: set.recallEnabled !== false,
        notes: set.addEnabled !== false,
        looksAlone: set.fastRecallFallbackEnabled !== false,
        teaches: set.guidance !== false,
        allTools: set.tools === "all",
        plainNames: set.toolNames === "plain",
        home: text(set.home),
        project: text(set.project),
        budget: number(set.budget, 0, 8_000),
        promptMs: budgetMs ?? PROMPT_MS,
        startMs: budgetMs ? Math.max(budgetMs, START_MS) : START_MS,
        characters: number(set.maxMessageChars, 1, 20_000) ?? CHARACTERS,
        deep: set.reasoningMode === "accuracy_first",
        debug: set.debug === true,
        signals: readLimits(set),
    };
}
function readLimits(set) {
    const pause = number(set.signalCooldownMs, 0, 86_400_000);
    const limits = {
        min_importance: number(set.signalMinImportance, 1, 10),
        most_at_once: set.signalsEnabled === false ? 0 : number(set.signalMaxPerSignal, 0, 1_000),
        cooldown_seconds: pause === undefined ? undefined : Math.ceil(pause / 1_000),
        most_per_session: number(set.signalMaxPerSession, 0, 1_000),
        max_age_seconds: number(set.signalMaxAgeSec, 0, 31_536_000),
    };
    return Object.values(limits).some((one) => one !== undefined) ? limits : undefined;
}
function number(value, least, most) {
    if (typeof value !== "number" || !Number.isFinite(value))
        return undefined;
    return Math.min(most, Math.max(least, Math.round(value)));
}
