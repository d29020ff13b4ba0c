// A home with a daemon that speaks nacre's protocol, and programs that stand for nacre's.
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";

export const SHIPPED = process.env.NACRE_PLUGINS ?? join(import.meta.dirname ?? ".", "../../src/nacre/hosts/plugins");

/** Longer than a busy machine takes: tests that are about time say so. */
const PATIENCE_MS = 20_000;

/** Copies of a plugin's files, so that nacre.json beside them is the test's own. `library` holds those of a folder `lib`. */
export function stage(t, plugin, library = "lib") {
  const home = mkdtempSync(join(tmpdir(), "nacre-"));
  const folder = join(home, "plugin");
  mkdirSync(join(folder, library), { recursive: true });
  for (const name of plugin) {
    const target = join(folder, name.includes("/lib/") ? library : "", name.split("/").pop());
    writeFileSync(target, readFileSync(join(SHIPPED, name)));
  }
  writeFileSync(join(folder, "package.json"), '{"type": "module"}');
  const links = new Set();
  const made = {
    /** How many wait for the daemon. */
    open: () => links.size,
    home,
    folder,
    asked: [],
    /** What a hook is told: a text, a status, or nothing yet. */
    answer: () => "",
    noted: () => lines(join(home, "noted.jsonl")),
    place(told = {}) {
      const place = { home, nacre: ["/nowhere/nacre"], hook: ["/nowhere/nacre-hook"], env: {}, version: "1", patience_ms: PATIENCE_MS, ...told };
      writeFileSync(join(folder, "nacre.json"), JSON.stringify(place));
    },
    program(body) {
      const path = join(home, `program-${Math.random()}.mjs`);
      writeFileSync(path, body.replaceAll("@HOME@", home));
      chmodSync(path, 0o755);
      return [process.execPath, path];
    },
    /** A nacre-hook that writes down what it was asked, and prints `output`. */
    hook(output = "") {
      return made.program(`
        import { appendFileSync, readFileSync } from "node:fs";
        const given = JSON.parse(readFileSync(0, "utf8"));
        appendFileSync("@HOME@/noted.jsonl", JSON.stringify({ words: process.argv.slice(2), given }) + "\\n");
        process.stdout.write(${JSON.stringify(output)});`);
    },
    async daemon() {
      const server = createServer((request, response) => {
        const [, way, host, event] = request.url.split("/");
        const parts = [];
        request.on("data", (data) => parts.push(data));
        request.on("end", () => {
          const asked = { way, host, event, ...JSON.parse(Buffer.concat(parts)) };
          made.asked.push(asked);
          const told = made.answer(asked, response);
          if (typeof told === "number") response.writeHead(told).end();
          else if (told !== undefined) response.end(told);
        });
      });
      server.on("connection", (link) => {
        links.add(link);
        link.on("close", () => links.delete(link));
        link.on("error", () => {});
      });
      await new Promise((listening) => server.listen(join(home, "daemon.sock"), listening));
      t.after(() => {
        for (const link of links) link.destroy();
        server.close();
      });
    },
  };
  made.place();
  t.after(() => takeAway(home));
  return made;
}

/** Takes a folder away in which a log may just be written: each try looks anew at what is in it. */
function takeAway(folder, tries = 20) {
  try {
    rmSync(folder, { recursive: true, force: true, maxRetries: 2, retryDelay: 20 });
  } catch (error) {
    if (tries === 0) throw error;
    takeAway(folder, tries - 1);
  }
}

/** Waits until something is there, and fails after five seconds. */
export async function until(found) {
  for (const end = Date.now() + 5_000; Date.now() < end; ) {
    const value = found();
    if (value) return value;
    await new Promise((soon) => setTimeout(soon, 10));
  }
  throw new Error(`never: ${found}`);
}

function lines(path) {
  return existsSync(path) ? readFileSync(path, "utf8").trim().split("\n").filter(Boolean).map((line) => JSON.parse(line)) : [];
}
