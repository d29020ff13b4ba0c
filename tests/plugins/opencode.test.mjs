import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";

import { stage, until } from "./stage.mjs";

/** OpenCode, as far as the plugin sees it. `known` are the sessions that it can tell about. */
async function host(t, { place, known = {} } = {}) {
  const on = stage(t, ["opencode/nacre.js", "openclaw/lib/link.js"], "nacre");
  if (place) on.place(place(on));
  const loaded = await import(pathToFileURL(join(on.folder, "nacre.js")));
  const client = { session: { get: async ({ path }) => ({ data: known[path.id] }) } };
  const hooks = await loaded.NacrePlugin({ directory: "/code/harbour", client });
  let number = 0;
  const code = {
    ...on,
    exported: Object.keys(loaded),
    hooks,
    happens: (type, properties) => hooks.event({ event: { type, properties } }),
    begins: (id, info = {}) => code.happens("session.created", { sessionID: id, info: { id, ...info } }),
    /** What the message of a person becomes. */
    async says(id, text) {
      const message = { id: `msg_${++number}`, sessionID: id };
      const own = { id: `prt_${number}`, sessionID: id, messageID: message.id, type: "text", text };
      const other = { ...own, id: `prt_${number}b`, text: "a file", synthetic: true };
      const output = { message, parts: [own, other] };
      await hooks["chat.message"]({ sessionID: id }, output);
      return output.parts.slice(2);
    },
    set answer(answer) {
      on.answer = answer;
    },
  };
  return code;
}

const events = (code) => code.asked.map(({ event, source }) => [event, source]);

test("a session begins with its context, as a part that is marked as not the person's", async (t) => {
  const code = await host(t);
  await code.daemon();
  code.answer = (request) => `CONTEXT of ${request.event}`;
  await code.begins("s1");
  const [first] = await code.says("s1", "which queue?");
  assert.deepEqual(first, {
    id: "prt_1bnacre", sessionID: "s1", messageID: "msg_1", type: "text", text: "CONTEXT of session-start", synthetic: true,
  });
  const [second] = await code.says("s1", "and now?");
  assert.equal(second.text, "CONTEXT of prompt");
  assert.deepEqual(code.asked[0], {
    way: "hook", host: "opencode", event: "session-start", session_id: "s1", prompt: "which queue?", cwd: "/code/harbour", source: "startup",
  });
});

test("where nothing is worth telling, the message stays as it is", async (t) => {
  const code = await host(t);
  await code.daemon();
  await code.begins("s1");
  assert.deepEqual(await code.says("s1", "thanks"), []);
});

test("after a compaction the start is given again, and a session from before is gone on with", async (t) => {
  const code = await host(t, { known: { old: {} } });
  await code.daemon();
  await code.begins("s1");
  await code.says("s1", "one");
  await code.happens("session.compacted", { sessionID: "s1" });
  await code.says("s1", "two");
  await code.says("old", "three");
  assert.deepEqual(events(code), [["session-start", "startup"], ["session-start", "compact"], ["session-start", "resume"]]);
});

test("sub-agents are given nothing and hand nothing over", async (t) => {
  const code = await host(t, { known: { old: { parentID: "s1" } }, place: (on) => ({ hook: on.hook() }) });
  await code.daemon();
  await code.begins("s1");
  await code.begins("s2", { parentID: "s1" });
  for (const id of ["s2", "old"]) {
    await code.says(id, "look for files");
    await code.happens("session.idle", { sessionID: id });
  }
  await code.says("s1", "hello");
  await code.happens("session.idle", { sessionID: "s1" });
  const noted = await until(() => code.noted().length && code.noted());
  assert.deepEqual(noted.map(({ given }) => given.session_id), ["s1"]);
  assert.equal(code.asked.length, 1);
});

test("nacre hears of turns, compactions and the end of what was talked in", async (t) => {
  const code = await host(t, { place: (on) => ({ hook: on.hook() }) });
  await code.begins("s1");
  await code.begins("silent");
  await code.says("s1", "hello");
  await code.happens("session.idle", { sessionID: "s1" });
  await code.hooks["experimental.session.compacting"]({ sessionID: "s1" }, { context: [] });
  await code.hooks.dispose();
  await code.hooks.dispose();
  const ends = () => code.noted().filter(({ words }) => words.at(-1) !== "session-start");
  const noted = await until(() => ends().length >= 3 && ends());
  assert.deepEqual(noted.map(({ words }) => words.at(-1)).sort(), ["pre-compact", "session-end", "turn-end"]);
  for (const { words, given } of noted) assert.deepEqual([words.at(-2), given.session_id, given.cwd], ["opencode", "s1", "/code/harbour"]);
});

for (const [fault, answer] of Object.entries({
  "is not there": null,
  "hangs": () => undefined,
  "talks rubbish": (_, response) => void response.socket.end("<html>"),
  "hangs up": (_, response) => void response.destroy(),
})) {
  test(`the turn goes on where the daemon ${fault}`, async (t) => {
    const code = await host(t, { place: () => ({ patience_ms: undefined }) });
    if (answer) await code.daemon();
    code.answer = answer;
    await code.begins("s1");
    for (const most of [1_500, 150]) {
      const began = performance.now();
      assert.deepEqual(await code.says("s1", "hello"), []);
      assert.ok(performance.now() - began < most + 3_000);
    }
  });
}

test("a host that hands over another shape than expected is not hurt", async (t) => {
  const code = await host(t);
  for (const event of [{ type: "session.created" }, { type: "session.idle", properties: { sessionID: 3 } }, { type: "constructor", properties: { sessionID: "s" } }]) {
    await code.hooks.event({ event });
  }
  await code.hooks["chat.message"]({ sessionID: "s1" }, {});
  await code.hooks["experimental.session.compacting"]({}, {});
});

test("the file exports one plugin and takes nothing from npm", async (t) => {
  const code = await host(t);
  assert.deepEqual(code.exported, ["NacrePlugin"]);
});

test("the quotes that opencode run puts around a prompt are taken off", async (t) => {
  const code = await host(t);
  await code.daemon();
  await code.begins("s1");
  const said = ['"which \\"queue\\" is it?"', '"one" or "two"', '"word"'];
  for (const words of said) await code.says("s1", words);
  assert.deepEqual(code.asked.map(({ prompt }) => prompt), ['which "queue" is it?', '"one" or "two"', '"word"']);
});
