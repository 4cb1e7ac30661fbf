// Loads a thread's TypeScript file in tests and development; builds do not need it. The file is bundled with its packages,
// and the bundle is cached until one of its files changes. A TypeScript loader would compile the hundred modules one by one,
// which takes two to four seconds of CPU per thread.
import { mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { buildSync } from "esbuild";

const root = fileURLToPath(new URL("../..", import.meta.url));
const folder = join(root, "node_modules/.cache/nearcrawl");

/** Imports the file at this URL. Its bundle is stored where its packages can be resolved. */
export async function importSource(url) {
  const source = fileURLToPath(url);
  const bundle = join(folder, `${basename(source, ".ts")}.mjs`);
  if (!isFresh(bundle)) build(source, bundle);
  await import(pathToFileURL(bundle).href);
}

const inputsOf = (bundle) => `${bundle}.inputs.json`;
const stateOf = (file) => {
  const { mtimeMs, size } = statSync(join(root, file));
  return [mtimeMs, size];
};

function isFresh(bundle) {
  try {
    const inputs = JSON.parse(readFileSync(inputsOf(bundle), "utf8"));
    return Object.entries(inputs).every(([file, state]) => String(stateOf(file)) === String(state));
  } catch {
    return false;
  }
}

/**
 * Several threads may build at once. The list of inputs is written after the bundle, so that no thread uses an outdated
 * bundle.
 */
function build(source, bundle) {
  const beganMs = Date.now();
  const { metafile, outputFiles } = buildSync({
    entryPoints: [source],
    bundle: true,
    platform: "node",
    target: "node20",
    format: "esm",
    conditions: ["nearcrawl-source"],
    external: ["zlib-sync", "node-sqlite3-wasm"],
    absWorkingDir: root,
    banner: { js: "import{createRequire as __cr}from'node:module';const require=__cr(import.meta.url);" },
    logLevel: "warning",
    metafile: true,
    write: false,
  });
  const states = Object.keys(metafile.inputs).map((file) => [file, stateOf(file)]);
  mkdirSync(folder, { recursive: true });
  rmSync(inputsOf(bundle), { force: true });
  place(bundle, outputFiles[0].contents);
  // If a file changed during the build, the bundle may hold its old or its new text.
  const isOfNow = states.some(([, [mtimeMs]]) => mtimeMs >= beganMs);
  if (!isOfNow) place(inputsOf(bundle), JSON.stringify(Object.fromEntries(states)));
}

function place(file, content) {
  const unfinished = `${file}.${process.pid}-${process.hrtime.bigint()}`;
  writeFileSync(unfinished, content);
  renameSync(unfinished, file);
}
