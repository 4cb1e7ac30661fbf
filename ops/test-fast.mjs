// Runs the quick tests while writing: those without a database, the built program or a browser. Arguments are passed to
// vitest, where file names narrow the choice (`npm run test:fast -- test/trust`).
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, posix } from "node:path";
import { fileURLToPath } from "node:url";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const slow = ["database", "built-command", "browser"].map((name) => `test/support/${name}.ts`);
const slowFolders = ["test/lab/", "test/end-to-end/", "test/fuzz/"];
/** Files that take over five seconds each beside others: they use many seeds, whole fleets, or waits on the wire. */
const longFiles = [
  ...["balance/newcomer", "gateway/hostile-crawlers", "gateway/hostile-sessions", "overview/readiness"],
  ...["migrating-crawler/crawler", "migrating-crawler/hostile-coordinator", "migrating-crawler/wire-size"],
  ...["migrating-crawler/extract/extraction-pool", "migrating-crawler/fetch/slowed-bodies"],
  ...["migrating-crawler/live-settings", "migrating-crawler/supervisor/supervisor"],
  ...["migrating-crawler/supervisor/return-release", "migrating-crawler/traps/trap-sites"],
  ...["ops/reproducible-bundle", "ops/world/figures", "ops/world/odd-world"],
  ...["ops/world/running-world", "rir-import/formats/ipv6-text", "rir-import/lookup-random"],
  ...["rir-import/lookup-suite", "rir-import/read/read-in-threads", "subnets/subnet-tree"],
].map((name) => `test/${name}.test.ts`);

const known = new Map();
/** Whether a test file imports one of the slow helpers, directly or not. */
function isSlow(path) {
  if (slow.includes(path)) return true;
  if (known.has(path)) return known.get(path);
  known.set(path, false);
  const text = readFileSync(join(root, path), "utf8");
  const imported = [...text.matchAll(/\bfrom "(\.[^"]+)"/g)].map(([, to]) =>
    posix.join(posix.dirname(path), to),
  );
  const answer =
    /\bspawn(Sync)?\(|\bexecFile(Sync)?\(|\bfork\(/.test(text) ||
    imported.some((to) => to.startsWith("test/") && existsSync(join(root, to)) && isSlow(to));
  known.set(path, answer);
  return answer;
}

const options = process.argv.slice(2).filter((one) => one.startsWith("-"));
const wanted = process.argv.slice(2).filter((one) => !one.startsWith("-"));
const files = readdirSync(join(root, "test"), { recursive: true, encoding: "utf8" })
  .map((name) => `test/${name.replaceAll("\\", "/")}`)
  .filter((path) => path.endsWith(".test.ts") && !slowFolders.some((folder) => path.startsWith(folder)))
  .filter((path) => wanted.length === 0 || wanted.some((part) => path.includes(part)))
  .filter((path) => !isSlow(path) && (wanted.length > 0 || !longFiles.includes(path)));
const vitest = join(dirname(createRequire(import.meta.url).resolve("vitest/package.json")), "vitest.mjs");
const { status } = spawnSync(process.execPath, [vitest, "run", ...options, ...files], {
  cwd: root,
  stdio: "inherit",
});
process.exit(status ?? 1);
