/**
 * The last release and this software on one database, as during a rolling upgrade: coordinators and crawlers of both as
 * processes, built from the release's tag and from here. Nothing is refused, nothing is fetched twice, and crawlers of the
 * last release continue at the coordinator of this one. Skipped where no release is known: see CONTRIBUTING.md.
 */
import { type ChildProcess, execFile, fork, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createFrontierStore } from "#coordinator/crawl/frontier/frontier-store";
import type { Database } from "#db/server-database";
import { generateWorld } from "#ops/world/generate-world";
import { type RunningWorld, startWorld } from "#ops/world/main";
import { writeRegistryFiles } from "#ops/world/registry-files";
import { builtProgram, projectRoot } from "../support/built-command.ts";
import { testDatabase } from "../support/database.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { until } from "../support/until.ts";
import { builtRelease, lastRelease } from "./last-release.ts";

const release = lastRelease();
if (release === null)
  process.stderr.write(
    "rolling upgrade: skipped, there is no tag v… here; NEARCRAWL_LAST_RELEASE names a release as tag or commit\n",
  );

const world = generateWorld({ seed: 20, sites: 48, crawlers: 4 });
const urls = world.sites.map(({ host }) => `http://${host}/`);

/** By their index in the world; one of each version is near most of the sites. */
const [oldCrawlers, newCrawlers] = [
  [0, 2],
  [1, 3],
] as const;

interface Program {
  readonly root: string;
  readonly name: "old" | "new";
}
interface Coordinator {
  readonly child: ChildProcess;
  readonly webUrl: string;
}

let database: Database;
let internet: RunningWorld;
let folder: string;
let [old, own]: [Program, Program] = [null as never, null as never];
const children: ChildProcess[] = [];

beforeAll(async () => {
  if (release === null) return;
  folder = temporaryFolder("nearcrawl-rolling-");
  await builtProgram("ops/cli/main");
  [old, own] = [
    { root: builtRelease(release), name: "old" },
    { root: projectRoot, name: "new" },
  ];
  database = await testDatabase({ maxConnections: 4 });
  // The last release makes its own tables.
  await database.pool.query(`drop schema "${database.schema}" cascade`);
  internet = await startWorld(world);
}, 180_000);
afterAll(async () => {
  for (const child of children) child.kill("SIGKILL");
  await internet?.close();
  await database?.close();
}, 60_000);

const env = () => ({ ...process.env, DATABASE_URL: database.url, NEARCRAWL_SCHEMA: database.schema });

/** Does not block the emulated Internet, which runs in this process. */
async function command({ root, name }: Program, ...args: string[]): Promise<string> {
  const all = [join(root, "dist/ops/cli/main.js"), ...args, "--home", join(folder, name)];
  return (await promisify(execFile)(process.execPath, all, { env: env() })).stdout;
}

/** Resolves when it listens; rejects with its output when it ends before that. */
async function startCoordinator({ root, name }: Program): Promise<Coordinator> {
  const home = join(folder, name);
  mkdirSync(home, { recursive: true });
  const file = join(home, "settings.json");
  const settings = {
    ...{ listen: { port: 0 }, resolvers: [internet.dnsAddress], logLevel: "silent" },
    ...{ scope: { pagesPerHost: 6, maxDepth: 3, admitNewHosts: false }, heartbeatSeconds: 5 },
    delegation: { expectedCrawlers: 4, settleSeconds: 5 },
    contact: "noc@example.org",
  };
  writeFileSync(file, JSON.stringify(settings));
  const args = ["coordinator", "--home", home, "--config", file];
  const child = fork(join(root, "dist/ops/cli/main.js"), args, {
    ...{ env: env(), execArgv: [], stdio: ["ignore", "ignore", "pipe", "ipc"] },
  });
  children.push(child);
  let complaints = "";
  child.stderr?.on("data", (text) => {
    complaints = `${complaints}${text}`.slice(-2000);
  });
  const webUrl = await new Promise<string>((resolve, reject) => {
    child.on("message", (message: { type?: string; webUrl?: string }) => {
      if (message.type === "listening") resolve(message.webUrl ?? "");
    });
    child.once("exit", (code) => reject(new Error(`the coordinator ended with ${code}: ${complaints}`)));
  });
  return { child, webUrl };
}

/** A crawler of the program's own version, with a key that it issued, at that coordinator. */
async function startCrawler(program: Program, index: number, { webUrl }: Coordinator): Promise<void> {
  const { name, address } = world.crawlers[index]!;
  const { key } = JSON.parse(await command(program, "coordinator", "add-crawler", name, "--json")) as {
    key: string;
  };
  const file = join(folder, `${name}.json`);
  const settings = {
    ...{ coordinatorUrl: `${webUrl.replace("http", "ws")}/crawler`, key, name, home: join(folder, name) },
    ...{ publicAddress: address, proxy: internet.proxyUrlOf(index), coordinatorProxy: "none" },
    ...{ resolvers: [internet.dnsAddress], responseTimeFactor: 0, probeMethods: ["head", "connect"] },
    ...{ politenessFloorMs: 200, limits: { priority: 0 }, status: { port: 0 } },
  };
  writeFileSync(file, JSON.stringify(settings));
  const main = join(program.root, "dist/migrating-crawler/main.js");
  children.push(spawn(process.execPath, [main, file], { stdio: "ignore" }));
}

async function stop({ child }: Coordinator): Promise<number | null> {
  const gone = once(child, "exit");
  child.kill("SIGTERM");
  return (await gone)[0] as number | null;
}

const rows = async <Row extends object>(text: string): Promise<Row[]> =>
  (await database.pool.query<Row>(text)).rows;
const count = async (text: string) =>
  (await rows<{ count: number }>(`select count(*)::int as count ${text}`))[0]!.count;
const online = async () => await count("from crawler where state = 'online' and revoked_at is null");
const fetchesOf = async (crawlers: readonly number[], since = "-infinity") =>
  await count(
    `from page_fetch f join crawler c using (crawler_id)
     where c.name in (${crawlers.map((index) => `'${world.crawlers[index]!.name}'`).join(", ")})
       and f.fetched_at > '${since}'`,
  );
const ready = async ({ webUrl }: Coordinator) => (await fetch(`${webUrl}/ready`)).status;
/** Tables and columns, except the days of fetches; and the applied migrations. */
const tables = async () => [
  await rows(
    `select c.relname, a.attname from pg_class c join pg_attribute a on a.attrelid = c.oid
     where c.relnamespace = current_schema()::regnamespace and c.relkind in ('r', 'p', 'v') and not c.relispartition
       and a.attnum > 0 and not a.attisdropped order by 1, 2`,
  ),
  await rows("select id, name from migration order by id"),
];

describe.skipIf(release === null)("a rolling upgrade from the last release", { timeout: 300_000 }, () => {
  it("crawls with both versions on one database, refuses nothing, fetches nothing twice, and continues with the new one", async () => {
    const before = await startCoordinator(old);
    await command(old, "rir", "apply", ...(await writeRegistryFiles(world, join(folder, "registry"))));
    for (const index of oldCrawlers) await startCrawler(old, index, before);
    await until(async () => (await online()) === 2, 60_000);
    await command(old, "urls", "add", ...urls.slice(0, 12));
    await until(async () => (await fetchesOf(oldCrawlers)) > 10, 60_000);

    const after = await startCoordinator(own);
    const readiness = [await ready(before), await ready(after)];
    await startCrawler(own, newCrawlers[0], before);
    await startCrawler(own, newCrawlers[1], after);
    await until(async () => (await online()) === 4, 60_000);
    await command(own, "urls", "add", ...urls.slice(12, 36));
    await until(async () => (await fetchesOf(newCrawlers)) > 0, 90_000);
    const ending = await stop(before);
    const [endedAt] = await rows<{ now: string }>("select now()::text");
    // Crawlers of both versions move to the remaining coordinator, which has the highest number.
    const atTheLast = "coordinator_number = (select max(coordinator_number) from running_coordinator)";
    await until(
      async () => (await count(`from crawler where state = 'online' and ${atTheLast}`)) === 4,
      60_000,
    );
    await command(own, "urls", "add", ...urls.slice(36));
    const frontier = createFrontierStore(database.pool);
    await until(async () => (await frontier.progress()).urlsPending === 0, 120_000);

    expect(readiness).toEqual([200, 200]);
    expect(ending).toBe(0);
    expect(await fetchesOf(oldCrawlers, endedAt!.now)).toBeGreaterThan(0);
    const twice = "from (select from page_fetch group by host_hash, url_hash having count(*) > 1) twice";
    expect(await count(twice)).toBe(0);
    expect(await count("from (select distinct host_hash, url_hash from page_fetch) urls")).toBe(
      await count("from frontier_url"),
    );
    expect(await rows("select kind, words from incident")).toEqual([]);
    expect(await rows("select name from crawler where draining_since is not null")).toEqual([]);
    const versions = await rows<{ software_version: string }>(
      "select distinct software_version from crawler",
    );
    process.stderr.write(
      `rolling upgrade: from ${release}, ${await count("from page_fetch")} fetches, crawlers of ${versions.map((one) => one.software_version).join(" and ")}\n`,
    );

    // The old version again: it works beside the new one or refuses with a message, and changes no table.
    const was = await tables();
    const again = await startCoordinator(old).catch((error: Error) => error.message);
    if (typeof again === "string") expect(again).toMatch(/migration/);
    else {
      await until(async () => (await ready(again)) === 200, 20_000);
      expect(await stop(again)).toBe(0);
    }
    process.stderr.write(
      `rolling upgrade: started again, the old one ${typeof again === "string" ? `says: ${again}` : "works on"}\n`,
    );
    expect(await tables()).toEqual(was);
    expect(await stop(after)).toBe(0);
  });
});
