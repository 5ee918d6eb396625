// Builds the page's script and style into the package: `make page-assets`, or `npm ci && npm run build`.
import { build } from "esbuild";

const out = new URL("../src/depyf/views/page/static/", import.meta.url).pathname;

await build({
  entryPoints: { page: "src/main.js" },
  outdir: process.env.OUT ?? out,
  bundle: true,
  format: "iife",
  // The oldest browsers that can unpack the data (DecompressionStream) and mix colours.
  target: ["chrome111", "firefox113", "safari16.4"],
  minify: true,
  charset: "ascii",
  legalComments: "none",
  logLevel: "warning",
});
await build({
  entryPoints: ["src/page.css"],
  outdir: process.env.OUT ?? out,
  minify: true,
  target: ["chrome111", "firefox113", "safari16.4"],
  charset: "ascii",
  logLevel: "warning",
});
