/**
 * A crawl of the emulated Internet on four slices on two servers, by the program as people run it, beside one on a single slice:
 * the same pages, the same links between them.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { OpenSlices } from "#coordinator/slices/open-slices-store";
import { openServerDatabase } from "#db/server-database";
import { nearcrawl } from "../support/built-command.ts";
import { SliceServers } from "../support/slice-servers.ts";
import { slicedWorld } from "../support/sliced-world.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { until } from "../support/until.ts";

let servers: SliceServers;
beforeAll(async () => {
  servers = await SliceServers.begin();
}, 120_000);
afterAll(async () => await servers?.close());

const schema = "world";
const place = () => ({ database: { url: servers.url(0), schema } });

const crawl = async () =>
  await nearcrawl(
    [
      ...["up", "--sites", "14", "--crawlers", "2", "--seed", "7", "--exit"],
      ...["--home", temporaryFolder("nearcrawl-sliced-")],
    ],
    { ...place(), withinMs: 280_000 },
  );

async function hostsKnown(): Promise<number> {
  const database = await openServerDatabase({ databaseUrl: servers.url(0), schema });
  try {
    const { rows } = await database.pool.query<{ hosts: number }>(
      // A run that begins may find what the one before has left, and drops it.
      `select count(*)::int as hosts from frontier_host
       where fetches > 0 and exists (select from run where finished_at is null)`,
    );
    return rows[0]!.hosts;
  } catch {
    return 0;
  } finally {
    await database.close();
  }
}

/** While it crawls. */
async function addSlices(count: number): Promise<void> {
  for (let number = 1; number < count; number++) {
    const server = number % 2 === 1 ? ["--server", servers.url(1)] : [];
    const added = await nearcrawl(["slices", "add", "--no-balance", ...server], place());
    expect(added.out + added.err).toContain(`slice ${number} was added`);
  }
  expect(await nearcrawl(["slices", "balance"], place())).toMatchObject({ code: 0 });
}

async function content() {
  const database = await openServerDatabase({ databaseUrl: servers.url(0), schema });
  const slices = await OpenSlices.open(database);
  try {
    const rows = async <Row extends object>(sql: string) =>
      (await Promise.all(slices.open.map(async ({ pool }) => (await pool.query<Row>(sql)).rows))).flat();
    const urls = await rows<{ url: string; links: number; visits: number }>(
      "select url, back_links as links, least(visits, 1) as visits from frontier_url",
    );
    const pages = await rows<{ url: string; slice: number }>(
      "select u.url, (select slice_number from slice_self) as slice from page join frontier_url u using (host_hash, url_hash)",
    );
    return {
      urls: urls.map(({ url, links, visits }) => `${url} ${links} ${visits}`).sort(),
      pages: pages.map(({ url }) => url).sort(),
      slices: [...new Set(pages.map(({ slice }) => slice))].sort(),
    };
  } finally {
    await slices.close();
    await database.close();
  }
}

/** What its coordinator had not moved when it ended. */
async function moveTheRest(): Promise<void> {
  const database = await openServerDatabase({ databaseUrl: servers.url(0), schema });
  const world = await slicedWorld(database);
  try {
    await world.moveAll();
  } finally {
    await world.close();
    await database.close();
  }
}

describe("nearcrawl up", () => {
  it("crawls the same pages where slices are added meanwhile, on two servers", async () => {
    const alone = await crawl();
    const before = await content();
    const running = crawl();
    const early = running.then(({ code, out, err }) => {
      throw new Error(`it ended early, with ${code}: ${out}${err}`);
    });
    await Promise.race([early, until(async () => (await hostsKnown()) > 2, 120_000)]);
    early.catch(() => {});
    await addSlices(4);
    const sliced = await running;
    await moveTheRest();
    const after = await content();
    const listed = await nearcrawl(["slices", "list"], place());

    expect(alone.code, alone.err).toBe(0);
    expect(sliced.code, sliced.err + sliced.out).toBe(0);
    expect(listed.out).toMatch(/1024 +25\.0 %/);
    expect(before.slices).toEqual([0]);
    expect(after.slices).toEqual([0, 1, 2, 3]);
    expect(after.pages).toEqual(before.pages);
    expect(after.urls).toEqual(before.urls);
  }, 700_000);
});
