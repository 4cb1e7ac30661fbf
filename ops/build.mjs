// Builds dist/: TypeScript to JavaScript, the one-file bundles of crawler and dock, and the files that are not code.
// Runs in `prepare`, so that `npm install` leaves a working `nearcrawl`. Where the compiler is not
// installed (a package installed for production), an existing dist/ is left as it is.
import { execFileSync } from "node:child_process";
import { cpSync, existsSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

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
  if (existsSync(join(root, "dist/ops/nearcrawl/main.js"))) process.exit(0);
  console.error(
    "nearcrawl: TypeScript is not installed, so dist/ cannot be built: run npm install without --omit=dev",
  );
  process.exit(1);
}
rmSync(join(root, "dist"), { recursive: true, force: true });
execFileSync(process.execPath, [compiler, "-p", join(root, "tsconfig.build.json")], {
  stdio: "inherit",
  cwd: root,
});
for (const folder of ["coordinator/web/assets", "coordinator/net/openapi"]) {
  const source = join(root, folder);
  if (existsSync(source)) cpSync(source, join(root, "dist", folder), { recursive: true });
}
if (existsSync(join(root, "migrating-crawler/main.ts"))) {
  const { bundleCrawler, bundleDock } = await import("./bundle-crawler.mjs");
  const { readStopWords } = await import(
    new URL("../dist/migrating-crawler/extract/stop-words.js", import.meta.url)
  );
  const stopWords = readStopWords();
  await bundleCrawler({ root, outfile: join(root, "dist/crawler-bundle.mjs"), stopWords });
  await bundleDock({ root, outfile: join(root, "dist/nearcrawl-crawler.mjs"), stopWords });
}
