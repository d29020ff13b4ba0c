// Build the JavaScript that hosts run, with nacre's version.
//   cd host-plugins && npm install && npm run build
// Optionally name another target folder.
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const shipped = join(here, "..", "src", "nacre", "hosts", "plugins");
const target = process.argv[2] ?? shipped;
const made = mkdtempSync(join(tmpdir(), "nacre-plugins-"));
const version = /^__version__ = "(.+)"$/m.exec(readFileSync(join(here, "..", "src", "nacre", "__init__.py"), "utf8"))[1];
const note = (source) => `// Made of host-plugins/src/${source}: change that, and run npm run build there.\n`;

execFileSync(join(here, "node_modules", ".bin", "tsc"), ["-p", here, "--outDir", made], { stdio: "inherit" });
const built = (name) => readFileSync(join(made, `${name}.js`), "utf8");

const library = join(target, "openclaw", "lib");
rmSync(library, { recursive: true, force: true });
mkdirSync(library, { recursive: true });
for (const name of ["index", "config", "idle", "link", "server", "tools"]) writeFileSync(join(library, `${name}.js`), note(`${name}.ts`) + built(name));

// OpenCode loads every export of every file in its plugin folder as a plugin, so the library is in a folder below.
const plugin = built("opencode").replace('"./link.js"', '"./nacre/link.js"');
mkdirSync(join(target, "opencode"), { recursive: true });
writeFileSync(join(target, "opencode", "nacre.js"), note("opencode.ts") + plugin);

for (const name of target === shipped ? ["openclaw/package.json", "openclaw/openclaw.plugin.json", "gemini-cli/gemini-extension.json"] : []) {
  const path = join(shipped, name);
  const told = JSON.parse(readFileSync(path, "utf8"));
  writeFileSync(path, `${JSON.stringify({ ...told, version }, null, 2)}\n`);
}
rmSync(made, { recursive: true });
