/** Hosts that opt out by name are found by an index, however many there are, and without delaying admission. */
import pg from "pg";
import { expect, it, vi } from "vitest";
import { withoutOptedOut } from "#coordinator/crawl/frontier/site-rule-writes";
import { deedsOf } from "#coordinator/run/opt-outs/complaint-store";
import { createOptOutMarks } from "#coordinator/run/opt-outs/mark-writes";
import type { OptOutRequest } from "#coordinator/run/opt-outs/opt-out";
import { createOptOutStore } from "#coordinator/run/opt-outs/store";
import { urlKeyOf } from "#core/url-key";
import { openDatabase } from "#db/connect";
import { migrate } from "#db/migrate";
import { testDatabase } from "../support/database.ts";
import { forThisFile } from "../support/for-this-file.ts";

const noon = new Date("2026-03-01T12:00:00Z");
const request: OptOutRequest = {
  target: { site: "a_b.example.info", network: null },
  source: "form",
  words: "please",
  replyTo: null,
  requester: "192.0.2.7",
  confirmed: false,
};

const database = await forThisFile(testDatabase());

it("finds a site's hosts by an index, and others' only where their names end in it", async () => {
  await database.pool.query(
    `insert into frontier_host (host_hash, host)
     select 1000 + n, 'h' || n || '.wide-' || n || '.example.info' from generate_series(1, 3000) n`,
  );
  await database.pool.query(
    `insert into frontier_host (host_hash, host) values
       (901, 'a_b.example.info'), (902, 'x.a_b.example.info'), (903, 'a-b.example.info'),
       (904, 'axb.example.info'), (905, 'xa_b.example.info'), (906, 'a_b.example.info.org')`,
  );
  await database.pool.query("analyze frontier_host");
  const asked = vi.spyOn(pg.Client.prototype, "query");

  await createOptOutStore(database.pool).request(request, noon);
  await createOptOutMarks(database.pool).apply(noon);
  const { hosts } = await deedsOf(database.pool, { site: "a_b.example.info", network: null }, noon);
  const calls = asked.mock.calls.map(([sql, values]) => ({ sql: String(sql), values: values as unknown[] }));
  asked.mockRestore();
  const ofHosts = calls.filter(({ sql }) => /reverse\(h\.host\)|right\(/.test(sql));
  const plans = await Promise.all(
    ofHosts.map(async ({ sql, values }) =>
      JSON.stringify((await database.pool.query(`explain ${sql}`, values)).rows),
    ),
  );
  const counted = calls.findIndex(({ sql }) => sql.includes("limit 101"));
  const locked = calls.findIndex(({ sql }) => sql.includes("pg_advisory_xact_lock"));
  const marked = await database.pool.query<{ host: string }>(
    "select host from frontier_host where opt_out_id is not null order by host",
  );

  expect(ofHosts).toHaveLength(4);
  expect(plans.filter((plan) => plan.includes("Seq Scan on frontier_host"))).toEqual([]);
  expect(hosts).toBe(2);
  expect(marked.rows.map(({ host }) => host)).toEqual(["a_b.example.info", "x.a_b.example.info"]);
  expect(counted).toBeGreaterThanOrEqual(0);
  expect(counted).toBeLessThan(locked);
});

it("admission in one schema does not delay an opt-out in another", async () => {
  const schema = `${database.schema}_b`;
  const place = { databaseUrl: database.url, home: "/nonexistent", schema };
  const other = await openDatabase({ ...place, maxConnections: 1 });
  await migrate(other);
  const adding = await database.pool.connect();
  const key = urlKeyOf("http://site.example/");
  if (typeof key === "string") throw new Error(key);
  await adding.query("begin");
  await withoutOptedOut(adding, [key]);
  await other.pool.query("set lock_timeout = 2000");

  const recorded = await createOptOutStore(other.pool)
    .request(request, noon)
    .catch((error: Error) => error.message);
  await adding.query("rollback");
  adding.release();
  await other.pool.query(`drop schema ${schema} cascade`);
  await other.close();

  expect(recorded).toMatchObject({ target: "a_b.example.info" });
});
