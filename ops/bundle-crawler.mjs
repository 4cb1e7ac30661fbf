// Makes one file each of the sources and packages of the migrating crawler (a release, which changes while it runs)
// and of the dock with the partners' commands (nearcrawl-crawler.mjs, which an administrator installs).
// Of the same commit and packages it is the same, byte for byte, wherever and whenever it is made: paths are told
// from the root, links are not followed to another place, lists are in one order.
import { join } from "node:path";
import { build } from "esbuild";

/** `stopWords`: what readStopWords of migrating-crawler/extract/stop-words.ts gives; a bundle has no files beside it. */
export async function bundleCrawler(settings) {
  await bundle("migrating-crawler/bundle-entry.ts", settings);
}

/** The partners' one file; `stopWords` as above. */
export async function bundleDock(settings) {
  await bundle("migrating-crawler/cli/bundle-entry.ts", settings);
}

async function bundle(entry, { root, outfile, stopWords }) {
  await build({
    entryPoints: [join(root, entry)],
    outfile,
    bundle: true,
    platform: "node",
    target: "node20",
    format: "esm",
    conditions: ["nearcrawl-source"],
    external: ["zlib-sync"],
    absWorkingDir: root,
    preserveSymlinks: true,
    plugins: [messagesInEnglish],
    define: { bundledStopWords: JSON.stringify(inOrder(stopWords)), isOneFile: "true" },
    banner: { js: "import{createRequire as __cr}from'node:module';const require=__cr(import.meta.url);" },
    logLevel: "warning",
  });
}

/** zod names a file for each language, which is half of it, and brings them all in; its messages are English here. */
export const messagesInEnglish = {
  name: "messages-in-english",
  setup(bundler) {
    bundler.onLoad({ filter: /zod[/\\]v4[/\\]locales[/\\]index\.js$/ }, () => ({
      contents: 'export { default as en } from "./en.js";',
    }));
  },
};

function inOrder(words) {
  return Object.fromEntries(Object.entries(words).sort(([a], [b]) => (a < b ? -1 : 1)));
}
