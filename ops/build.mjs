// Builds dist/: TypeScript compiled to JavaScript, the bundles of the program, the crawler and the dock, the commands'
// descriptions (for their help, ops/decisions/0039), and the files that are not code.
// Runs in `prepare`, so that `npm install` leaves a working `nearcrawl`. Where the compiler is not installed (a package
// installed for production), it keeps an existing dist/. The new dist/ is built aside and renamed into place when it is
// complete, so programs that run from the old one continue. The folder's time is the build's start, so a newer source is not in
// it. --unchecked skips the type check, which takes most of the time.
//
// `npx nearcrawl` runs node_modules/.bin/nearcrawl, which is linked here. package.json has no "bin" on purpose: before running
// a command that the project's own package.json names, npx (npm 9 to 11) installs the project into its cache. This builds
// everything a second time, and if that installation is interrupted, it is never repaired.
import { execFileSync } from "node:child_process";
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, relative } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const require = createRequire(import.meta.url);

function compilerPath() {
  try {
    const manifest = require.resolve("typescript/package.json");
    return join(dirname(manifest), "bin", "tsc");
  } catch {
    return null;
  }
}

const compiler = compilerPath();
if (compiler === null) {
  if (existsSync(join(root, "dist/ops/cli/main.js"))) {
    linkCommand();
    process.exit(0);
  }
  console.error(
    "nearcrawl: TypeScript is not installed, so dist/ cannot be built: run npm install without --omit=dev",
  );
  process.exit(1);
}
const startedAt = new Date();
const dist = join(root, "dist");
const unfinished = `${dist}.new-${process.pid}`;
try {
  await buildInto(unfinished);
  utimesSync(unfinished, startedAt, startedAt);
  replace(dist, unfinished);
  linkCommand();
} finally {
  removeUnused();
}

async function buildInto(folder) {
  const options = ["-p", join(root, "tsconfig.build.json"), "--outDir", folder];
  if (process.argv.includes("--unchecked")) options.push("--noCheck");
  execFileSync(process.execPath, [compiler, ...options], { stdio: "inherit", cwd: root });
  for (const path of ["coordinator/web/assets"]) {
    const source = join(root, path);
    if (existsSync(source)) cpSync(source, join(folder, path), { recursive: true });
  }
  const { bundleCrawler, bundlePartnerProgram } = await import("./bundle-crawler.mjs");
  const stopWordsFile = join(folder, "coordinator/core/words/stop-words-resolver.js");
  const { readStopWords } = await import(pathToFileURL(stopWordsFile).href);
  const stopWords = readStopWords();
  await bundleCrawler({ root, outfile: join(folder, "crawler-bundle.mjs"), stopWords });
  await bundlePartnerProgram({ root, outfile: join(folder, "nearcrawl-crawler.mjs"), stopWords });
  const { bundleProgram } = await import("./bundle-program.mjs");
  await bundleProgram({ root, folder });
  const { describeCommands } = await import(pathToFileURL(join(folder, "ops/cli/commands.js")).href);
  writeFileSync(join(folder, "ops/cli/commands.json"), JSON.stringify(await describeCommands()));
  // The monitoring files are bundled too, because package.json's exports lead to dist/, which may be missing or outdated.
  const files = await import(pathToFileURL(join(folder, "ops/monitoring-files.js")).href);
  cpSync(join(root, "ops/monitoring"), join(folder, "monitoring"), { recursive: true });
  writeFileSync(join(folder, "monitoring/alert-rules.yml"), files.alertRulesYaml());
  writeFileSync(join(folder, "monitoring/grafana-dashboard.json"), files.dashboardJson());
  // npm sets the executable bit when it installs, but not when only dist/ is rebuilt.
  chmodSync(join(folder, "ops/cli/main.js"), 0o755);
}

function replace(folder, newer) {
  try {
    renameSync(folder, `${folder}.old-${process.pid}`);
  } catch {
    // dist/ is missing, or belongs to a container image's layer, where a folder cannot be renamed.
    rmSync(folder, { recursive: true, force: true });
  }
  renameSync(newer, folder);
}

/** The link is relative, so that the project may be moved. It is renamed into place, since the command may be in use. */
function linkCommand() {
  const folder = join(root, "node_modules/.bin");
  mkdirSync(folder, { recursive: true });
  const link = join(folder, "nearcrawl");
  const unfinished = `${link}.new-${process.pid}`;
  rmSync(unfinished, { force: true });
  symlinkSync(relative(realpathSync(folder), join(root, "dist/ops/cli/main.js")), unfinished);
  renameSync(unfinished, link);
}

/** Removes leftovers of this build and of killed ones. */
function removeUnused() {
  for (const name of readdirSync(root)) {
    const pid = /^dist\.(?:new|old)-(\d+)$/.exec(name)?.[1];
    if (pid === undefined || (Number(pid) !== process.pid && isAlive(Number(pid)))) continue;
    rmSync(join(root, name), { recursive: true, force: true });
  }
}

function isAlive(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
