/** What countries, organisations and ranges contain, counted by hand in the tiny world. */

import type { Pool } from "pg";
import { beforeAll, describe, expect, it } from "vitest";
import { keepSites } from "#coordinator/tell/sites/sites-upkeep-store";
import { answerWho } from "#coordinator/tell/who/answer";
import { createRollUpReads } from "#coordinator/tell/who/subnet-reads";
import type { WhoAnswer } from "#coordinator/tell/who/who-api";
import { whoOperations } from "#coordinator/tell/who/who-ask";
import { verdictOf } from "#coordinator/tell/who/words";
import { testDatabase } from "../support/database.ts";
import { everyRead } from "../support/every-read.ts";
import { forThisFile } from "../support/for-this-file.ts";
import { seedHost, seedWorld, worldNow } from "../support/seed-world.ts";
import { shownAs } from "../support/shown-as.ts";
import { tinyResolver } from "../support/web-server.ts";

const database = await forThisFile(testDatabase());
beforeAll(async () => {
  const { pool } = database;
  await seedWorld(pool);
  await seedHost(pool, { host: "big.example.org", subnet: "1.2.0.0", address: "1.2.100.1" });
  await seedHost(pool, { host: "six.example.org", subnet: "2a00:1::", address: "2a00:1::1" });
  await pool.query(`
    update frontier_host set due_at = null where host = 'six.example.org';
    update frontier_host set good_pages = 200, near_duplicates = 10, fetched_bytes = 4000000 where host = 'big.example.org';
    update frontier_host set good_pages = 20 where host = 'old.example.org';
    update frontier_host set good_pages = 90 where host = 'six.example.org';
    update delegation set rtt_ms = 40, measured = true where subnet_id = 7`);
  await listSites(pool);
});

async function who(question: string): Promise<WhoAnswer> {
  const reads = everyRead(database.pool, () => performance.now());
  return await answerWho(question, { reads, resolver: tinyResolver, scope: null }, worldNow);
}

/** Runs until every host is in the list with its current state. */
async function listSites(pool: Pool): Promise<void> {
  await pool.query("update site_upkeep set reached_host = null, finished_at = null");
  while (!(await keepSites(pool, worldNow)).rests);
}

const inAsia = {
  subnets: 3,
  registered: 5,
  byCrawler: [
    { crawler: "athens", subnets: 1, pages: 210 },
    { crawler: "berlin", subnets: 1, pages: 20 },
  ],
  others: null,
  unassigned: 1,
  hosts: 3,
  dueHosts: 3,
  pages: 230,
  bytes: 4_000_000,
  // Nobody measured the RTT to berlin's subnet.
  rtt: { pages: 210, meanMs: 12.5, medianMs: 12.5 },
};

describe("a range without a delegation of its own", () => {
  it("shows what is inside it instead of saying that nobody crawls it", async () => {
    const answer = await who("1.0.0.0/8");

    expect(answer.rollUp).toEqual(inAsia);
    expect(verdictOf(answer)).toBe(
      "In its space: 3 subnets in use: athens 1, berlin 1, not assigned directly 1; 230 pages; mean 12.5 ms",
    );
  });

  it("says that its pages are too few for a mean", async () => {
    const answer = await who("1.2.9.0 - 1.2.9.9");

    expect(answer.rollUp?.rtt).toEqual({ pages: 0, meanMs: null, medianMs: null });
  });

  it("has the same counts when they are made like those of a large one", async () => {
    const read = createRollUpReads(database.pool, () => 0);
    const whole = await read({ type: "range", first: "0.0.0.0", last: "255.255.255.255" }, worldNow);
    await database.pool.query(`
      insert into subnet (first_address, last_address, registry, added_in)
      select '9.0.0.0'::inet + n, '9.0.0.0'::inet + n, 'arin', 1 from generate_series(1, 20001) n`);
    const large = await read({ type: "range", first: "0.0.0.0", last: "255.255.255.255" }, worldNow);
    await database.pool.query("delete from subnet where first_address between '9.0.0.0' and '9.255.255.255'");

    expect(whole?.registered).toBe(6);
    expect(large).toEqual({ ...whole, registered: null });
  });
});

describe("an organisation", () => {
  it("shows what it holds and what others hold inside that", async () => {
    const answer = await who("Example Networks");

    // Its /16 with the /24 of Example Web Ltd in it, and the IPv6 range: (12.5 × 210 + 40 × 90) / 300.
    expect(answer.rollUp).toMatchObject({ subnets: 4, registered: 5, hosts: 4, pages: 320 });
    expect(answer.rollUp?.rtt).toEqual({ pages: 300, meanMs: 20.75, medianMs: 12.5 });
    expect(verdictOf(answer)).toBe(
      "Example Networks holds 3 subnets; in its space: 4 subnets in use: berlin 2, athens 1, not assigned directly 1; 320 pages; mean 20.8 ms",
    );
  });

  it("says what to do where nothing is in use", async () => {
    await database.pool.query("update frontier_host set subnet_id = null where host = 'empty.example.net'");
    await listSites(database.pool);
    const answer = await who("Empty Org");
    await database.pool.query("update frontier_host set subnet_id = 6 where host = 'empty.example.net'");
    await listSites(database.pool);

    expect(verdictOf(answer)).toBe("Empty Org holds 1 subnet; in its space: no subnet in use");
    expect(shownAs(whoOperations.who, answer).page).toContain("No subnet in use.");
  });
});

describe("a country", () => {
  it.each(["country:GR", "gr", "Greece"])(
    "asked as %s answers with the subnets registered there",
    async (question) => {
      const answer = await who(question);

      expect(answer.takenFor).toEqual({ type: "country", value: "GR" });
      expect(answer.rollUp).toEqual({ ...inAsia, registered: null });
      expect(verdictOf(answer)).toMatch(/^In its space: 3 subnets in use/);
    },
  );

  it("yields to a crawler or an organisation of that name, unless asked for as a country", async () => {
    await database.pool.query("insert into holder (holder_key, name) values ('name:gr', 'GR')");
    const asName = await who("GR");
    const asCountry = await who("country:GR");
    await database.pool.query("delete from holder where holder_key = 'name:gr'");

    expect(asName.takenFor.type).toBe("organisation");
    expect(asCountry.takenFor.type).toBe("country");
  });

  it("that does not exist is said not to exist", async () => {
    expect((await who("country:Atlantis")).standing[0]?.words).toContain("it names no country");
    expect((await who("DD")).takenFor.value).toBe("DE");
  });
});

it("a page shows the same figures with links, and escapes a crawler's name", async () => {
  await database.pool.query(`update crawler set name = '<b>athens</b>' where name = 'athens'`);
  const { page: markup } = shownAs(whoOperations.who, await who("country:GR"));
  await database.pool.query(`update crawler set name = 'athens' where name = '<b>athens</b>'`);

  expect(markup).not.toContain("<b>athens");
  expect(markup).toContain("In its space");
  expect(markup).toContain('href="/sites?country=GR"');
  expect(markup).toContain("median 12.5 ms, weighted by 210 pages");
});

it("an address shows when its crawler was checked and how long similar subnets stay with theirs", async () => {
  await database.pool.query(`
    insert into move_rate (kind, key, moves, months, lost_ms)
    values ('all', '0', 10, 100, 200), ('country', 'GR', 4, 50, 80)`);
  const answer = await who("1.2.3.4");
  await database.pool.query("delete from move_rate");
  const later = await who("1.2.3.4");

  // 12 / 120, then 6 / 70 in the country.
  expect(answer.ageing).toMatchObject({ kind: "country", moves: 4, months: 50 });
  expect(answer.ageing?.perMonth).toBeCloseTo(6 / 70, 10);
  expect(shownAs(whoOperations.who, answer).words).toContain(
    "checked today; subnets like this move every 12 months on average (4 moves seen in its country)",
  );
  expect(shownAs(whoOperations.who, answer).page).toContain(
    "subnets like this move every 12 months on average",
  );
  expect(later.ageing).toBeNull();
});
