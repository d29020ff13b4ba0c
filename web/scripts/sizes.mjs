// Prints what the first load takes, compressed, and fails above the limit. Pages that load on demand count by themselves.
import { readFileSync } from "node:fs";
import { gzipSync } from "node:zlib";

const LIMIT = 80_000;
const folder = new URL("../../src/nacre/serve/static/", import.meta.url);
const manifest = JSON.parse(readFileSync(new URL(".vite/manifest.json", folder), "utf8"));
const compressed = (file) => gzipSync(readFileSync(new URL(file, folder))).length;

function filesOf(key, seen = new Set()) {
  const chunk = manifest[key];
  if (!chunk || seen.has(chunk.file)) return seen;
  seen.add(chunk.file);
  for (const style of chunk.css ?? []) seen.add(style);
  for (const next of chunk.imports ?? []) filesOf(next, seen);
  return seen;
}

const sum = (files) => [...files].reduce((total, file) => total + compressed(file), 0);
const first = filesOf("index.html");
const rows = Object.entries(manifest)
  .filter(([, chunk]) => chunk.isDynamicEntry)
  .map(([key]) => [key.replace("src/", ""), sum([...filesOf(key)].filter((file) => !first.has(file)))]);
const total = sum(first) + compressed("index.html");
const lines = [["first load", total], ...rows.sort((a, b) => b[1] - a[1])];
process.stdout.write(
  `${lines.map(([name, size]) => `${(size / 1000).toFixed(1).padStart(7)} kB  ${name}`).join("\n")}\n`,
);
if (total > LIMIT) {
  process.stderr.write(`The first load takes ${total} bytes compressed; at most ${LIMIT} are allowed.\n`);
  process.exit(1);
}
