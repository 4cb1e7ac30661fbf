// Loads a thread's TypeScript file in tests and development, bundled with its packages and cached until one of its files
// changes. A TypeScript loader would compile its hundred modules one by one, which takes two to four seconds of CPU per thread.
// Builds do not need it.
import { mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { buildSync } from "esbuild";

const root = fileURLToPath(new URL("../..", import.meta.url));
const folder = join(root, "node_modules/.cache/nearcrawl");

/** Imports the file at this URL; its bundle is stored where its packages can be resolved. */
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
 * Several threads may build at once. The list of inputs is written after the bundle, so that no thread takes an outdated one.
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
    external: ["zlib-sync"],
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
  // A file that changed during the build may be in the bundle or not.
  const isOfNow = states.some(([, [mtimeMs]]) => mtimeMs >= beganMs);
  if (!isOfNow) place(inputsOf(bundle), JSON.stringify(Object.fromEntries(states)));
}

function place(file, content) {
  const unfinished = `${file}.${process.pid}-${process.hrtime.bigint()}`;
  writeFileSync(unfinished, content);
  renameSync(unfinished, file);
}
