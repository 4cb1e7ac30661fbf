/**
 * The table of every real registry file at hand: what reading it gives, how long that takes, and whether an
 * independent count (test/rir-import/independent) comes to the same. Written to test/bench/results/rir-files.md
 * with `--write`, printed otherwise. Run:
 *
 *   node --conditions=nearcrawl-source --import tsx test/bench/rir-files.bench.ts --write
 *
 * Seconds are CPU time of reading, merging and nesting that file alone, median of three.
 */
import { writeFileSync } from "node:fs";
import { arch, cpus } from "node:os";
import { join } from "node:path";
import { checkSources } from "#rir-import/check";
import { type FileRow, readRow, registryFilesIn } from "../rir-import/shared-file-table.ts";
import { sharedData } from "../support/shared-data.ts";
import { resultFile } from "./result-file.ts";

const runs = 3;

async function cpuSeconds(file: string): Promise<number> {
  const before = process.cpuUsage();
  await checkSources([file]).catch(() => {});
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1e6;
}

async function medianSeconds(file: string): Promise<number> {
  const seconds: number[] = [];
  for (let run = 0; run < runs; run += 1) seconds.push(await cpuSeconds(file));
  return seconds.sort((a, b) => a - b)[runs >> 1] as number;
}

function cellsOf(path: string, row: FileRow, seconds: number): readonly string[] {
  if (row.type === "refused")
    return ["refused", "", "", "", "", seconds.toFixed(3), reasonOf(row.reason, path)];
  const { counts, independent, report } = row;
  const numbers = [counts.records, counts.kept, counts.ignored, counts.malformed];
  const same = JSON.stringify(counts) === JSON.stringify(independent);
  const verdict = same ? "the same" : `differs: ${Object.values(independent).join(", ")}`;
  return [report.format, ...numbers.map((value) => value.toLocaleString("en")), seconds.toFixed(3), verdict];
}

/** Line and reason, without the path before them. */
const reasonOf = (message: string, path: string) => (message.split(path)[1] ?? message).replace(/\|/g, "\\|");

async function table(folder: string): Promise<string> {
  const paths = registryFilesIn(folder);
  await checkSources(paths.filter((path) => path.startsWith("iana/")).map((path) => join(folder, path)));
  const lines: string[] = [];
  for (const path of paths) {
    const seconds = await medianSeconds(join(folder, path));
    lines.push(`| ${[path, ...cellsOf(path, await readRow(folder, path), seconds)].join(" | ")} |`);
  }
  const head =
    "| file | format | records | kept | ignored | malformed | CPU s | counted by awk |\n|---|---|---|---|---|---|---|---|";
  return `${head}\n${lines.join("\n")}`;
}

const folder = sharedData("rir");
if (folder !== null) {
  const text = `# Every registry file at hand

${new Date().toISOString().slice(0, 10)}, Node ${process.versions.node}, ${cpus()[0]?.model ?? arch()}, ${cpus().length} cores. Seconds are CPU
time of reading, merging and nesting that file alone, median of ${runs}. The last column compares all four counts
with awk programs that know nothing of the readers (test/rir-import/independent), or says why a file is refused.

    node --conditions=nearcrawl-source --import tsx test/bench/rir-files.bench.ts --write

${await table(folder)}
`;
  if (process.argv.includes("--write")) writeFileSync(resultFile("rir-files.md"), text);
  process.stdout.write(text);
}
