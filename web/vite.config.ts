import { defineConfig } from "vite";

// `npm run dev` shows the pages of this folder with the data of a running daemon, e.g. NACRE_URL=http://127.0.0.1:7077.
const daemon = process.env.NACRE_URL ?? "http://127.0.0.1:7077";
const asTheDaemonExpects = { host: new URL(daemon).host, origin: daemon };

export default defineConfig({
  build: {
    outDir: "../src/nacre/serve/static",
    emptyOutDir: true,
    target: "es2022",
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    manifest: true,
  },
  server: {
    proxy: {
      "/api": { target: daemon, headers: asTheDaemonExpects, ws: true },
      "/open": { target: daemon, headers: asTheDaemonExpects },
    },
  },
  test: { environment: "happy-dom", include: ["src/**/*.test.ts", "src/**/*.test.tsx"] },
} as Parameters<typeof defineConfig>[0]);
