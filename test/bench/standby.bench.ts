/**
 * What a commit costs that waits for a standby: two embedded servers of one machine, with fsync on both, and one session that
 * commits by turns without waiting for the standby (`local`), until that has written (`remote_write`), flushed (`on`) or applied
 * it (`remote_apply`). Both share the machine's one disk, and no network is between them.
 * Run: npm run bench -- standby [--commits 300] [--write]
 *   --write: the figures go to test/bench/results/standby.md
 */
import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { cpus } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { Client } from "pg";
import { ServerPair } from "../support/standby.ts";
import { removeTemporaryFolders } from "../support/temporary-folder.ts";
import { resultFile } from "./result-file.ts";

const { values } = parseArgs({
  options: { commits: { type: "string", default: "300" }, write: { type: "boolean", default: false } },
});
const commits = Number(values.commits);
const modes = ["local", "remote_write", "on", "remote_apply"] as const;
/** Rows of 1 KB in a commit: a heartbeat's worth, and a batch of results'. */
const sizes = [1, 256] as const;

const pair = await ServerPair.begin();
for (const { url } of [pair.primary, pair.standby]) await at(url, "alter system set fsync = on");
await pair.synchronous(true);
const client = new Client({ connectionString: pair.primary.url });
await client.connect();
await client.query("create table commit_bench (number bigint, text text)");

const took = new Map<string, number[]>();
for (let round = 0; round < commits; round += 1)
  for (const rows of sizes)
    for (const mode of modes) {
      await client.query(`set synchronous_commit to ${mode}`);
      const startMs = performance.now();
      await client.query(
        `insert into commit_bench select n, repeat('x', 1000) from generate_series(1, ${rows}) as n`,
      );
      const key = `${mode} ${rows}`;
      took.set(key, [...(took.get(key) ?? []), performance.now() - startMs]);
    }
await client.end();
await pair.close();
removeTemporaryFolders();

const words = {
  local: "without waiting (asynchronous)",
  remote_write: "the standby has written it (`remote_write`)",
  on: "the standby has flushed it (`on`)",
  remote_apply: "the standby has applied it (`remote_apply`)",
};
const table = [
  "| a commit waits until | 1 row: median | 95 % | 256 rows: median | 95 % |",
  "|---|--:|--:|--:|--:|",
  ...modes.map((mode) => {
    const cells = sizes.flatMap((rows) => {
      const sorted = took.get(`${mode} ${rows}`)!.sort((one, other) => one - other);
      return [0.5, 0.95].map((share) => `${sorted[Math.floor(sorted.length * share)]!.toFixed(1)} ms`);
    });
    return `| ${words[mode]} | ${cells.join(" | ")} |`;
  }),
].join("\n");
process.stdout.write(`${table}\n`);
if (values.write) {
  const root = join(import.meta.dirname, "../..");
  const commit = execFileSync("git", ["rev-parse", "--short", "HEAD"], {
    cwd: root,
    encoding: "utf8",
  }).trim();
  writeFileSync(
    resultFile("standby.md"),
    `# What a commit costs that waits for a standby

${new Date().toISOString().slice(0, 10)}, commit ${commit}, ${cpus()[0]?.model.trim()}, ${cpus().length} cores. Primary and standby are embedded
servers of this one machine, with fsync on both: they share a disk, and no network is between them. One session, ${commits} commits of
each kind by turns, rows of 1 KB. \`npm run bench -- standby --write\`

${table}
`,
  );
}

async function at(url: string, query: string): Promise<void> {
  const session = new Client({ connectionString: url });
  await session.connect();
  await session.query(query);
  await session.query("select pg_reload_conf()");
  await session.end();
}
