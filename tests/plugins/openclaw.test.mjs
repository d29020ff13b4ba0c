import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { pathToFileURL } from "node:url";

import { stage, until } from "./stage.mjs";

const FILES = ["index", "config", "idle", "link", "server", "tools"].map((name) => `openclaw/lib/${name}.js`);
const WHERE = { sessionId: "s1", sessionKey: "agent:main:main", workspaceDir: "/code/harbour", agentId: "main", trigger: "user" };
const SLACK_MS = 3_000; // a busy machine

/** OpenClaw, as far as the plugin sees it. */
async function host(t, { config = {}, host: settings = {}, place } = {}) {
  const on = stage(t, [...FILES, "openclaw/tools.json"]);
  if (place) on.place(place(on));
  const plugin = (await import(pathToFileURL(join(on.folder, "lib", "index.js")))).default;
  const hooks = new Map();
  const logged = [];
  const claw = {
    ...on,
    logged,
    tools: [],
    prompts: [],
    names: [],
    run: (name, event = {}, where = {}) => hooks.get(name)?.(event, { ...WHERE, ...where }),
    command: (event) => hooks.get("command:new")?.(event),
    hooks,
    turn: (prompt, event = {}, where = {}) =>
      claw.run("before_prompt_build", { prompt: `[Fri 2026-11-20 20:00 UTC] ${prompt}`, currentUserMessage: prompt, currentUserMessageId: prompt, messages: [], ...event }, where),
    set answer(answer) {
      on.answer = answer;
    },
  };
  const log = (message) => logged.push(message);
  plugin.register({
    config: settings,
    pluginConfig: config,
    logger: { info: log, warn: log, error: log },
    on: (name, handler) => hooks.set(name, handler),
    registerHook: (names, handler) => names.forEach((name) => hooks.set(name, handler)),
    registerTool: (make, { names }) => {
      claw.names = names;
      claw.tools = make({ workspaceDir: on.home });
    },
    registerMemoryCapability: ({ promptBuilder }) => claw.prompts.push(...promptBuilder({})),
  });
  return claw;
}

const tells = (texts) => (request) => texts[request.event] ?? "";
const fresh = (() => {
  let number = 0;
  return () => ({ sessionId: `fresh-${++number}` });
})();

test("what a session starts with stays in the system prompt, and what a prompt brings joins it", async (t) => {
  const claw = await host(t);
  await claw.daemon();
  const at = fresh();
  claw.answer = tells({ "session-start": "THE START", prompt: "FITS" });
  const first = await claw.turn("which queue?", {}, at);
  assert.match(first.appendSystemContext, /THE START$/);
  assert.equal(first.prependContext, undefined);
  const second = await claw.turn("and the mailer?", { messages: [{}] }, at);
  assert.equal(second.prependContext, "FITS");
  assert.equal(second.appendSystemContext, first.appendSystemContext);
  claw.answer = tells({});
  const third = await claw.turn("go on", { messages: [{}] }, at);
  assert.equal(third.prependContext, undefined);
  assert.match(third.appendSystemContext, /THE START\n\nFITS$/);
});

test("the daemon is told the session as its transcript has it, the folder and the person's own words", async (t) => {
  const claw = await host(t, { config: { budget: 900, maxMessageChars: 5 } });
  await claw.daemon();
  await claw.turn("which queue?", {}, { sessionId: "told" });
  assert.deepEqual(claw.asked[0], {
    way: "hook", host: "openclaw", event: "session-start", session_id: "told", cwd: "/code/harbour", prompt: "which",
    source: "startup", budget_tokens: 900,
  });
});

test("a host that does not tell the person's words apart has its time stamp taken off", async (t) => {
  const claw = await host(t);
  await claw.daemon();
  await claw.turn("hi", { currentUserMessage: undefined }, fresh());
  assert.equal(claw.asked[0].prompt, "hi");
});

test("a process that comes into the midst of a session gives the start again, since nothing of it is in sight", async (t) => {
  const claw = await host(t);
  await claw.daemon();
  await claw.turn("go on", { messages: [{}, {}] }, fresh());
  assert.deepEqual([claw.asked[0].event, claw.asked[0].source], ["session-start", "compact"]);
});

test("a turn that is built again is asked for once and gets the same", async (t) => {
  const claw = await host(t);
  await claw.daemon();
  claw.answer = tells({ "session-start": "THE START" });
  const at = fresh();
  const [one, two] = await Promise.all([claw.turn("hello there", {}, at), claw.turn("hello there", {}, at)]);
  assert.deepEqual(one, two);
  assert.equal(claw.asked.length, 1);
});

for (const [what, where] of Object.entries({
  "a sub-agent's": { sessionKey: "agent:main:subagent:x" },
  "a scheduled": { sessionKey: "agent:main:cron:x" },
  "a webhook's": { sessionKey: "hook:agent:main:hook:x" },
  "a heartbeat's": { trigger: "heartbeat" },
  "another session's": { inputProvenance: { kind: "inter_session" } },
})) {
  test(`${what} turn is given nothing and hands nothing over`, async (t) => {
    const claw = await host(t, { place: (on) => ({ hook: on.hook() }) });
    await claw.daemon();
    assert.equal(await claw.turn("look", {}, { ...fresh(), ...where }), undefined);
    claw.run("agent_end", {}, where);
    claw.run("before_reset", {}, where);
    await claw.turn("look", {}, fresh());
    assert.equal(claw.asked.length, 1);
    assert.deepEqual(claw.noted(), []);
  });
}

const FAULTS = {
  "is not there": null,
  "hangs": () => undefined,
  "talks rubbish": (_, response) => void response.socket.end("<html>"),
  "answers nothing": () => "",
  "breaks off": (_, response) => void response.writeHead(200, { "content-length": 90 }).write("half", () => response.destroy()),
  "refuses": () => 503,
  "knows no hooks": () => 404,
  "hangs up": (_, response) => void response.destroy(),
  "says too much": () => "x".repeat(20_000),
};
const HOOKS = {
  "is missing": () => ["/nowhere/nacre-hook"],
  "fails": (on) => on.program("process.exit(3)"),
  "hangs": (on) => on.program("setTimeout(() => {}, 60_000)"),
  "prints rubbish": (on) => on.program('process.stdout.write("{no"); process.exit(0)'),
};
describe("a turn goes on", { concurrency: 4 }, () => {
  for (const [fault, answer] of Object.entries(FAULTS)) {
    for (const [trouble, hook] of Object.entries(HOOKS)) {
      test(`where the daemon ${fault} and nacre-hook ${trouble}`, async (t) => {
        const claw = await host(t, { config: { guidance: false }, place: (on) => ({ hook: hook(on), patience_ms: undefined }) });
        if (answer) {
          await claw.daemon();
          claw.answer = answer;
        }
        const at = fresh();
        for (const most of [1_500, 150]) {
          const began = performance.now();
          assert.equal(await claw.turn(`within ${most}`, {}, at), undefined);
          assert.ok(performance.now() - began < most + SLACK_MS);
        }
      });
    }
  }
});

test("where the daemon has no answer, nacre-hook is asked", async (t) => {
  const claw = await host(t, { config: { guidance: false }, place: (on) => ({ hook: on.hook("ALONE") }) });
  await claw.daemon();
  claw.answer = () => "WHOLE";
  assert.deepEqual(await claw.turn("hello", {}, fresh()), { appendSystemContext: "WHOLE" });
  claw.answer = () => undefined;
  assert.deepEqual(await claw.turn("hello", {}, fresh()), { appendSystemContext: "ALONE" });
  await until(() => claw.open() === 0);
});

test("a session's first prompt waits for a daemon that is still loading", async (t) => {
  const claw = await host(t, { config: { guidance: false }, place: () => ({ patience_ms: undefined }) });
  await claw.daemon();
  claw.answer = (_, response) => void setTimeout(() => response.end("LATE"), 400);
  assert.deepEqual(await claw.turn("one", {}, fresh()), { appendSystemContext: "LATE" });
});

test("an owner may have prompts wait longer for their context", async (t) => {
  const claw = await host(t, { config: { recallBudgetMs: 9_000, guidance: false }, place: () => ({ patience_ms: undefined }) });
  await claw.daemon();
  claw.answer = (_, response) => void setTimeout(() => response.end("LATE"), 400);
  const at = fresh();
  await claw.turn("one", {}, at);
  assert.equal((await claw.turn("two", {}, at)).prependContext, "LATE");
});

test("where the daemon is away, nacre-hook looks", async (t) => {
  const told = JSON.stringify({ hookSpecificOutput: { hookEventName: "x", additionalContext: "ALONE" } });
  for (const output of ["ALONE", told]) {
    const claw = await host(t, { config: { guidance: false }, place: (on) => ({ hook: on.hook(output) }) });
    assert.deepEqual(await claw.turn("which queue?", {}, { sessionId: `alone-${output.length}` }), { appendSystemContext: "ALONE" });
    const [{ words, given }] = claw.noted();
    const [within] = words.splice(3, 1);
    assert.ok(within > 15_000 && within <= 19_900, `what is left of the time, not ${within}`);
    assert.deepEqual(words, ["--home", claw.home, "--within", "openclaw", "session-start"]);
    assert.equal(given.prompt, "which queue?");
    assert.equal(given.cwd, "/code/harbour");
  }
});

test("a daemon that hangs is asked once, and left alone for a while", async (t) => {
  const claw = await host(t, { place: () => ({ patience_ms: 300 }) });
  await claw.daemon();
  claw.answer = () => undefined;
  const at = fresh();
  await claw.turn("one", {}, at);
  await claw.turn("two", {}, at);
  assert.equal(claw.asked.length, 1);
});

test("nacre hears of turns, compactions and ends, and of each end once", async (t) => {
  const claw = await host(t, { place: (on) => ({ hook: on.hook() }) });
  const at = fresh();
  claw.run("agent_end", {}, at);
  claw.run("before_compaction", {}, at);
  claw.run("before_reset", { reason: "new" }, at);
  claw.run("session_end", { sessionId: at.sessionId, reason: "reset" }, { ...at, workspaceDir: undefined });
  claw.command({ action: "new", sessionKey: "agent:main:main", context: { previousSessionEntry: { sessionId: at.sessionId } } });
  const noted = await until(() => claw.noted().length >= 3 && claw.noted());
  assert.deepEqual(noted.map(({ words }) => words.at(-1)).sort(), ["pre-compact", "session-end", "turn-end"]);
  for (const { given } of noted) assert.deepEqual([given.session_id, given.cwd], [at.sessionId, "/code/harbour"]);
});

test("a session that was reset goes on under its name: it starts anew, and its end is noted again", async (t) => {
  const claw = await host(t, { place: (on) => ({ hook: on.hook() }) });
  await claw.daemon();
  const at = fresh();
  for (const number of [1, 2]) {
    await claw.turn(`what is up, ${number}?`, {}, at);
    claw.run("before_reset", { reason: "new" }, at);
    claw.run("session_end", { sessionId: at.sessionId, reason: "new" }, at);
  }
  await claw.turn("go on", {}, at);
  assert.deepEqual(claw.asked.map(({ event, source }) => [event, source]), [
    ["session-start", "startup"], ["session-start", "clear"], ["session-start", "clear"],
  ]);
  await until(() => claw.noted().filter(({ words }) => words.at(-1) === "session-end").length === 2);
});

test("a command ends the session that it leaves", async (t) => {
  const claw = await host(t, { place: (on) => ({ hook: on.hook() }) });
  const context = { previousSessionEntry: { sessionId: "left" }, sessionEntry: { sessionId: "begun" }, workspaceDir: "/code/harbour" };
  claw.command({ action: "reset", sessionKey: "agent:main:main", context });
  const [{ given }] = await until(() => claw.noted().length && claw.noted());
  assert.deepEqual([given.session_id, given.reason, given.cwd], ["left", "reset", "/code/harbour"]);
});

test("a session that a compaction gives another id goes on with what it was given", async (t) => {
  const claw = await host(t, { config: { guidance: false } });
  await claw.daemon();
  claw.answer = tells({ "session-start": "THE START" });
  const { sessionId } = fresh();
  await claw.turn("hi", {}, { sessionId });
  claw.run("session_end", { sessionId, reason: "compaction", nextSessionId: "after" });
  assert.deepEqual(await claw.turn("on", { messages: [{}] }, { sessionId: "after" }), { appendSystemContext: "THE START" });
});

test("of a thousand sessions the oldest is forgotten, and begins anew", async (t) => {
  const claw = await host(t);
  await claw.daemon();
  const turn = (sessionId) => claw.turn("hi", { messages: [{}], currentUserMessageId: `${Math.random()}` }, { sessionId });
  await turn("oldest");
  for (let number = 0; number < 1_000; number++) await turn(`many-${number}`);
  claw.asked.length = 0;
  await turn("many-999");
  await turn("oldest");
  assert.deepEqual(claw.asked.map(({ event }) => event), ["prompt", "session-start"]);
});

test("what was given in a long session is bounded", async (t) => {
  const claw = await host(t, { config: { guidance: false } });
  await claw.daemon();
  claw.answer = (request) => `${request.event} ${request.prompt} ${"x".repeat(3_000)}`;
  const at = fresh();
  let last;
  for (let number = 0; number < 12; number++) last = await claw.turn(`turn ${number}`, { messages: [{}] }, at);
  assert.ok(last.appendSystemContext.length < 16_000);
  assert.match(last.appendSystemContext, /^session-start turn 0/);
  assert.match(last.appendSystemContext, /prompt turn 10/);
  assert.match(last.prependContext, /^prompt turn 11/);
});

test("keys of the config switch off what they name", async (t) => {
  const quiet = await host(t, { config: { recallEnabled: false }, place: (on) => ({ hook: on.hook("C") }) });
  await quiet.daemon();
  const guided = await quiet.turn("hi", {}, fresh());
  assert.match(guided.appendSystemContext, /nacre_memory_search/);
  assert.deepEqual(quiet.asked, []);

  const deaf = await host(t, { config: { addEnabled: false } });
  assert.ok(!deaf.hooks.has("agent_end") && !deaf.names.includes("nacre_memory_store"));

  const off = await host(t, { config: { enabled: false } });
  assert.deepEqual([off.hooks.size, off.tools.length], [0, 0]);

  const strict = await host(t, { config: { fastRecallFallbackEnabled: false, guidance: false }, place: (on) => ({ hook: on.hook("C") }) });
  assert.equal(await strict.turn("hi", {}, fresh()), undefined);
  assert.deepEqual(strict.noted(), []);
});

test("limits of signals go with each prompt, to the daemon and to nacre-hook, and nothing where none is set", async (t) => {
  const config = { signalMinImportance: 9, signalCooldownMs: 1_500, signalMaxPerSession: 2.4, signalMaxAgeSec: "long", signalMaxPerSignal: -1 };
  const limits = { min_importance: 9, most_at_once: 0, cooldown_seconds: 2, most_per_session: 2 };
  const claw = await host(t, { config });
  await claw.daemon();
  const at = fresh();
  await claw.turn("one", {}, at);
  await claw.turn("two", {}, at);
  assert.deepEqual(claw.asked.map(({ signals }) => signals), [undefined, limits]);
  const silent = await host(t, { config: { signalsEnabled: false, signalMaxPerSignal: 3 }, place: (on) => ({ hook: on.hook() }) });
  const there = fresh();
  await silent.turn("one", {}, there);
  await silent.turn("two", {}, there);
  assert.deepEqual(silent.noted().map(({ given }) => given.signals), [undefined, { most_at_once: 0 }]);
  const usual = await host(t, { config: { signalsEnabled: true } });
  await usual.daemon();
  const here = fresh();
  await usual.turn("one", {}, here);
  await usual.turn("two", {}, here);
  assert.equal("signals" in usual.asked[1], false);
});

test("keys that do nothing are told once, with what to use instead, unless they ask for what nacre does", async (t) => {
  const config = { dbPath: "/x", uiPort: 1, uiHost: "h", captureStrategy: "last_turn", handoff: { includeBackground: true, logEnabled: false } };
  const told = (claw) => claw.logged.filter((line) => /no effect/.test(line));
  const claw = await host(t, { config });
  assert.deepEqual(told(claw).map((line) => line.split(":").slice(0, 2).join(":")), [
    "nacre: dbPath has no effect", "nacre: handoff.includeBackground has no effect",
    "nacre: captureStrategy has no effect", "nacre: uiHost, uiPort have no effect",
  ]);
  assert.deepEqual(told(await host(t, { config })), []);
  const fits = { captureStrategy: "full_session", includeAssistant: true, uiEnabled: false, handoff: { includeBackground: false } };
  assert.deepEqual(told(await host(t, { config: fits })), []);
});

test("with debug each question is told to OpenClaw's log, without a word of what was said", async (t) => {
  for (const debug of [true, false]) {
    const claw = await host(t, { config: { debug } });
    await claw.daemon();
    claw.answer = tells({ "session-start": "SECRET WORDS" });
    await claw.turn("private words", {}, fresh());
    assert.equal(claw.logged.length, debug ? 1 : 0);
    if (debug) assert.match(claw.logged[0], /^nacre: session-start: daemon, \d+ ms, 12 characters$/);
  }
});

test("keys that are of another shape than they should be are as good as none", async (t) => {
  const claw = await host(t, { config: { budget: "many", recallBudgetMs: null, home: 3, project: [], tools: 7, maxMessageChars: -4 } });
  await claw.daemon();
  await claw.turn("hi there", {}, fresh());
  assert.equal(claw.asked[0].prompt, "h");
  assert.equal(claw.names.length, 4);
});

test("tools keep a prefix unless nacre alone is OpenClaw's memory", async (t) => {
  const slot = { plugins: { slots: { memory: "nacre" }, entries: { "memory-core": { enabled: false } } } };
  const both = { plugins: { slots: { memory: "nacre" } } };
  const plain = await host(t, { config: { toolNames: "plain", tools: "all" }, host: slot });
  assert.ok(plain.names.includes("memory_search") && plain.names.length === 10);
  assert.match(plain.prompts[0], /Call memory_search/);
  const clash = await host(t, { config: { toolNames: "plain" }, host: both });
  assert.deepEqual(clash.names, ["nacre_memory_search", "nacre_memory_get", "nacre_memory_store", "nacre_memory_retire"]);
  assert.match(clash.logged[0], /prefix/);
  const usual = await host(t);
  assert.deepEqual(usual.tools.map((tool) => tool.name), usual.names);
  assert.deepEqual(usual.prompts, []);
});

const SERVER = `
  import { appendFileSync } from "node:fs";
  import { createInterface } from "node:readline";
  const say = (message) => process.stdout.write(JSON.stringify({ jsonrpc: "2.0", ...message }) + "\\n");
  appendFileSync("@HOME@/noted.jsonl", JSON.stringify({ words: process.argv.slice(2), cwd: process.cwd(), home: process.env.NACRE_HOME }) + "\\n");
  process.stdout.write("no json\\n");
  createInterface({ input: process.stdin }).on("line", (line) => {
    const { id, method, params } = JSON.parse(line);
    if (method === "initialize") say({ id, result: { protocolVersion: params.protocolVersion } });
    if (method !== "tools/call") return;
    const { name, arguments: given } = params;
    if (given.query === "die") process.exit(1);
    if (given.query === "refuse") say({ id, error: { code: -32602, message: "no such thing" } });
    else if (given.query !== "hang") say({ id, result: { content: [{ type: "text", text: name + " " + JSON.stringify(given) + " ask memory_get" }], isError: given.query === "bad" } });
  });`;

test("a tool's call goes to nacre mcp and its answer comes back, in the folder of the workspace", async (t) => {
  const claw = await host(t, { config: { project: "harbour" }, place: (on) => ({ nacre: on.program(SERVER) }) });
  const search = claw.tools.find((tool) => tool.name === "nacre_memory_search");
  assert.equal(search.parameters.additionalProperties, false);
  const told = await search.execute("1", { query: "queue" });
  assert.equal(told.content[0].text, 'nacre_memory_search {"query":"queue","project":"harbour"} ask nacre_memory_get');
  assert.deepEqual(told.details, { failed: false });
  const named = await search.execute("2", { query: "bad", project: "*" });
  assert.match(named.content[0].text, /"project":"\*"/);
  assert.deepEqual(named.details, { failed: true });
  assert.deepEqual(claw.noted(), [{ words: ["mcp", "--tools", "all"], cwd: claw.home, home: claw.home }]);
  claw.run("gateway_stop");
});

test("accuracy first makes searches deep where the agent does not say otherwise", async (t) => {
  const config = { reasoningMode: "accuracy_first" };
  const claw = await host(t, { config, place: (on) => ({ nacre: on.program(SERVER) }) });
  const [search, get] = claw.tools;
  const asked = async (tool, given) => JSON.parse((await tool.execute("1", given)).content[0].text.replace(/^\S+ (.*) ask .*$/, "$1"));
  assert.deepEqual(await asked(search, { query: "queue" }), { query: "queue", deep: true });
  assert.deepEqual(await asked(search, { query: "queue", deep: false }), { query: "queue", deep: false });
  assert.deepEqual(await asked(get, { ids: ["1"] }), { ids: ["1"] });
  claw.run("gateway_stop");
});

test("a tool that cannot be done says so, and the next call begins anew", async (t) => {
  const claw = await host(t, { place: (on) => ({ nacre: on.program(SERVER) }) });
  const search = claw.tools[0];
  for (const query of ["die", "refuse"]) assert.match((await search.execute("1", { query })).content[0].text, /could not be asked/);
  const given = new AbortController();
  const hangs = search.execute("2", { query: "hang" }, given.signal);
  setTimeout(() => given.abort(), 50);
  assert.match((await hangs).content[0].text, /cancelled/);
  assert.match((await search.execute("3", { query: "fine" })).content[0].text, /^nacre_memory_search/);
  claw.run("gateway_stop");
  const away = await host(t);
  assert.match((await away.tools[0].execute("4", {})).content[0].text, /nacre admin doctor/);
});

test("within a command by which nacre asks a model itself, the plugin does nothing", async (t) => {
  process.env.NACRE_OWN_CALL = "1";
  t.after(() => delete process.env.NACRE_OWN_CALL);
  assert.equal((await host(t)).hooks.size, 0);
});

test("a home that is not there is not made", async (t) => {
  const claw = await host(t, { place: (on) => ({ home: join(on.home, "gone") }) });
  await claw.turn("hi", {}, fresh());
  assert.ok(!existsSync(join(claw.home, "gone")));
});
