// Runs the benchmarks: all, the one of that name (`npm run bench -- fleet`), or those whose file name holds the word
// given (`npm run bench -- ip`). What follows the word goes to them.
import { spawnSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const word = process.argv[2] ?? "";
const found = readdirSync(join(root, "test/bench")).filter(
  (name) => name.endsWith(".bench.ts") && name.includes(word),
);
const files = found.includes(`${word}.bench.ts`) ? [`${word}.bench.ts`] : found;
if (files.length === 0) {
  console.error(`no benchmark has "${word}" in its name`);
  process.exit(2);
}
for (const file of files.sort()) {
  console.log(`\n# ${file}`);
  const args = [
    "--expose-gc",
    "--conditions=nearcrawl-source",
    "--import",
    "tsx",
    join("test/bench", file),
    ...process.argv.slice(3),
  ];
  const { status } = spawnSync(process.execPath, args, { cwd: root, stdio: "inherit" });
  if (status !== 0) process.exitCode = 1;
}
