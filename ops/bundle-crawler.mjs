// Makes the migrating crawler's one file of its sources and packages: what partners run, and what is measured.
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
    define: { bundledStopWords: JSON.stringify(stopWords), isOneFile: "true" },
    banner: { js: "import{createRequire as __cr}from'node:module';const require=__cr(import.meta.url);" },
    logLevel: "warning",
  });
}
