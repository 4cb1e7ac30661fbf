// Bundles sources and packages into one file each for the migrating crawler (a release, replaced while it runs) and for the
// dock with the partners' commands (nearcrawl-crawler.mjs, which an administrator installs). Equal commits and packages give
// equal bytes wherever and whenever a bundle is made: paths are relative to the root, links are not resolved, and lists are
// sorted.
import assert from "node:assert/strict";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { build } from "esbuild";

/** `stopWords` comes from readStopWords in coordinator/core/words/stop-words-resolver.ts, since a bundle has no files beside it. */
export async function bundleCrawler(settings) {
  await bundle("migrating-crawler/bundle-entry.ts", settings);
}

/** Bundles the partners' file. `stopWords` is the same as above. */
export async function bundlePartnerProgram(settings) {
  await bundle("migrating-crawler/cli/bundle-entry.ts", settings);
}

async function bundle(entry, { root, outfile, stopWords }) {
  const bundledThreads = { "page-worker": await pageThread(root) };
  await build({
    ...settingsOf(root),
    entryPoints: [join(root, entry)],
    outfile,
    format: "esm",
    external: ["zlib-sync"],
    plugins: [messagesInEnglish, languagesAsText],
    define: {
      bundledStopWords: JSON.stringify(inOrder(stopWords)),
      bundledThreads: JSON.stringify(bundledThreads),
    },
    banner: { js: "import{createRequire as __cr}from'node:module';const require=__cr(import.meta.url);" },
  });
}

/**
 * Embeds the code of the local page's thread as text, because a thread that started from the bundle would parse and compile all
 * its megabytes again in its own heap. Modules whose exports are not used are dropped with their side effects (above all
 * schemas).
 */
export async function pageThread(root) {
  const { outputFiles } = await build({
    ...settingsOf(root),
    entryPoints: [join(root, "migrating-crawler/status/page-worker.ts")],
    write: false,
    format: "cjs",
    plugins: [onlyWhatIsUsed],
  });
  return outputFiles[0].text;
}

const settingsOf = (root) => ({
  bundle: true,
  platform: "node",
  target: "node20",
  conditions: ["nearcrawl-source"],
  absWorkingDir: root,
  preserveSymlinks: true,
  logLevel: "warning",
});

const onlyWhatIsUsed = {
  name: "only-what-is-used",
  setup(bundler) {
    bundler.onResolve({ filter: /^[.#]/ }, async ({ path, pluginData, ...from }) => {
      if (pluginData === "asked") return null;
      const found = await bundler.resolve(path, { ...from, pluginData: "asked" });
      return { ...found, sideEffects: false };
    });
  },
};

/** zod imports a file per language, which is half of its size, but all our messages are English. */
export const messagesInEnglish = {
  name: "messages-in-english",
  setup(bundler) {
    bundler.onLoad({ filter: /zod[/\\]v4[/\\]locales[/\\]index\.js$/ }, () => ({
      contents: 'export { default as en } from "./en.js";',
    }));
  },
};

/** A megabyte of n-grams as one JSON text is faster to skip at every start, and faster to parse when it is used. */
export const languagesAsText = {
  name: "languages-as-text",
  setup(bundler) {
    bundler.onLoad({ filter: /eld[/\\]src[/\\]ngrams[/\\]\w+\.js$/ }, async ({ path }) => {
      const data = { ...(await import(pathToFileURL(path).href)) };
      const text = JSON.stringify(data);
      assert.deepStrictEqual(JSON.parse(text), data);
      const names = Object.keys(data).join(", ");
      return { contents: `export const { ${names} } = JSON.parse(${JSON.stringify(text)});` };
    });
  },
};

function inOrder(words) {
  return Object.fromEntries(Object.entries(words).sort(([a], [b]) => (a < b ? -1 : 1)));
}
