// Makes the migrating crawler's one file of its sources and packages: what partners run, and what is measured.
// Of the same commit and packages it is the same, byte for byte, wherever and whenever it is made: paths are told
// from the root, links are not followed to another place, lists are in one order.
import { join } from "node:path";
import { build } from "esbuild";

/** `stopWords`: what readStopWords of migrating-crawler/extract/stop-words.ts gives; a bundle has no files beside it. */
export async function bundleCrawler({ root, outfile, stopWords }) {
  await build({
    entryPoints: [join(root, "migrating-crawler/bundle-entry.ts")],
    outfile,
    bundle: true,
    platform: "node",
    target: "node20",
    format: "esm",
    conditions: ["nearcrawl-source"],
    external: ["zlib-sync"],
    absWorkingDir: root,
    preserveSymlinks: true,
    define: { bundledStopWords: JSON.stringify(inOrder(stopWords)), isOneFile: "true" },
    banner: { js: "import{createRequire as __cr}from'node:module';const require=__cr(import.meta.url);" },
    logLevel: "warning",
  });
}

function inOrder(words) {
  return Object.fromEntries(Object.entries(words).sort(([a], [b]) => (a < b ? -1 : 1)));
}
