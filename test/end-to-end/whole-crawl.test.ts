/**
 * Two runs over the same emulated Internet, under policies that give its subnets to different crawlers, end with the same
 * pages, links, ranks and changes. Another engine beneath the crawl must give the same result.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openServerDatabase } from "#db/server-database";
import { nearcrawl } from "../support/built-command.ts";
import { testDatabase } from "../support/database.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

let server: Awaited<ReturnType<typeof testDatabase>>;
beforeAll(async () => {
  server = await testDatabase();
});
afterAll(async () => await server?.close());

/** The schema of a run on the emulated Internet, which a run empties when it begins. */
const schema = "world";

async function crawl(policy: string) {
  const database = { url: server.url, schema };
  const ran = await nearcrawl(
    [
      ...["up", "--sites", "14", "--crawlers", "3", "--seed", "7", "--policy", policy, "--exit"],
      ...["--home", temporaryFolder("nearcrawl-whole-")],
    ],
    { database, withinMs: 280_000 },
  );
  expect(ran.code, ran.err).toBe(0);
  const ranked = await nearcrawl(["rank", "--write", "--iterations", "200"], { database });
  expect(ranked.code, ranked.err).toBe(0);
  return await content();
}

/** Sets, sorted; ranks to six digits, since sums of floating point depend on the order in which links were read. */
async function content() {
  const database = await openServerDatabase({ databaseUrl: server.url, schema });
  try {
    const texts = async (sql: string) =>
      (await database.pool.query<{ text: string }>(sql)).rows.map(({ text }) => text).sort();
    return {
      pages: await texts("select url || ' ' || digest as text from page"),
      links: await texts(
        "select url || ' ' || back_links || ' ' || least(visits, 1) as text from frontier_url",
      ),
      ranks: await texts(
        "select u.url || ' ' || to_char(r.page_rank, 'FM0.000000') as text from url_rank r join frontier_url u using (host_hash, url_hash)",
      ),
      // The run may end before its last changes are numbered; these wait in the inbox.
      changes: await texts(
        `select url || ' ' || kind as text from page_change union select url || ' ' || kind from page_change_inbox`,
      ),
    };
  } finally {
    await database.close();
  }
}

describe("a whole crawl", () => {
  it("ends with the same pages, links, ranks and changes under any delegation", async () => {
    const nearest = await crawl("nearest");
    const random = await crawl("random");

    expect(nearest.pages.length).toBeGreaterThan(50);
    expect(random).toEqual(nearest);
  }, 700_000);
});
