/** /storage and `nearcrawl storage`: sizes, retention, and the expected final size. */

import type { FastifyInstance } from "fastify";
import { afterAll, beforeAll, expect, it } from "vitest";
import { readCoordinatorConfig } from "#coordinator/config";
import { policySections } from "#coordinator/run/settings/schema";
import { createPolicyStore } from "#coordinator/run/settings/settings-store";
import { storagePart } from "#coordinator/tell/storage/start";
import { type StorageAnswer, type StorageFacts, storageAnswer } from "#coordinator/tell/storage/table-ends";
import { commandNamed, inProcess } from "../support/command-in-process.ts";
import { testDatabase } from "../support/database.ts";
import { forThisFile } from "../support/for-this-file.ts";
import { worldNow } from "../support/seed-world.ts";
import { webServer } from "../support/web-server.ts";

const database = await forThisFile(testDatabase());
let app: FastifyInstance;
beforeAll(async () => {
  const config = readCoordinatorConfig({ retention: { fetchDays: 14 } });
  app = webServer(database, { parts: [storagePart({ pool: database.pool, config })] });
  await database.pool.query(
    `insert into page_fetch (host_hash, url_hash, crawler_id, fetched_at, outcome, total_ms, wire_bytes, body_bytes,
       shipped_bytes)
     select n, n, 1, $1::timestamptz - make_interval(mins => n), 'fetched', 1, 1, 1, 1 from generate_series(1, 2000) n`,
    [worldNow],
  );
  await database.pool.query("analyze page_fetch");
});
afterAll(async () => await app?.close());

const settings = { retention: policySections.retention.parse({}), changes: policySections.changes.parse({}) };
const size = (table: string, rows: number, bytes: number) => ({
  table,
  rows,
  bytes,
  indexBytes: 0,
  parts: 1,
});
const facts = (differences: Partial<StorageFacts>): StorageFacts => ({
  ...{ sizes: [], oldest: new Map(), addedADay: new Map(), delegations: 0, epochs: [] },
  ...differences,
});
const daysBefore = (days: number) => new Date(worldNow.getTime() - days * 86_400_000);

it("expects of fetches what a day adds for as long as they are kept, and of rounds those that stay as well", () => {
  const answer = storageAnswer(
    facts({
      sizes: [size("page_fetch", 10_000, 2_500_000), size("probe_round", 2000, 400_000)],
      addedADay: new Map([
        ["page_fetch", 4000],
        ["probe_round", 100],
      ]),
      delegations: 1000,
    }),
    settings,
    worldNow,
  );

  const expected = Object.fromEntries(answer.tables.map((table) => [table.table, table.expectedBytes]));
  expect(expected).toEqual({ page_fetch: 4000 * 30 * 250, probe_round: (100 * 90 + 1000) * 200 });
  expect(answer.expectedBytes).toBe(30_000_000 + 2_000_000);
});

it("goes by the age of the oldest row where it knows no day's, says nothing before a day, and no less than there is", () => {
  const of = (oldest: Date | null) =>
    storageAnswer(
      facts({
        sizes: [size("delegation_history", 10_000, 1_000_000)],
        oldest: new Map(oldest === null ? [] : [["delegation_history", oldest]]),
      }),
      settings,
      worldNow,
    );

  expect(of(daysBefore(73)).tables[0]?.expectedBytes).toBe(10_000_000);
  expect(of(daysBefore(1000)).tables[0]?.expectedBytes).toBe(1_000_000);
  expect(of(daysBefore(0.5)).tables[0]?.expectedBytes).toBeNull();
  expect(of(null).expectedBytes).toBeNull();
});

it("goes by the policies in force", async () => {
  const page = await app.inject({ url: "/storage", headers: { accept: "text/html" } });
  const json = await app.inject("/api/storage");
  const csv = await app.inject("/storage?format=csv");

  const answer = json.json() as StorageAnswer;
  const fetches = answer.tables.find(({ table }) => table === "page_fetch");
  expect(fetches).toMatchObject({ keptDays: 14, policy: "retention.fetchDays", rows: 2000, parts: 1 });
  expect(fetches!.since).toBe(new Date(worldNow.getTime() - 2000 * 60_000).toISOString());
  expect(fetches!.bytes).toBeGreaterThan(100_000);
  expect(answer.tables.find(({ table }) => table === "frontier_url")).toMatchObject({
    ...{ keptDays: null, policy: null, end: "for each URL known", expectedBytes: null },
  });
  expect(answer.bytes).toBe(answer.tables.reduce((sum, one) => sum + one.bytes + one.indexBytes, 0));
  expect(page.body).toContain('<a href="/policies?show=all#retention.fetchDays">14 days</a>');
  expect(csv.body.split("\r\n")[0]).toBe(
    "table,rows,bytes,indexBytes,parts,keptDays,policy,end,since,expectedBytes",
  );
});

it("tells when the database went back, what the journal put back and what it could not", async () => {
  await database.pool.query(
    `insert into database_epoch (epoch, database_id, began_at, cause, words, replay)
     select 2, database_id, $1, 'timeline', 'the server is on timeline 2, and was on 1', $2
     from database_epoch`,
    [
      worldNow,
      JSON.stringify({
        replayed: { opt_out: 3, audit_entry: 4 },
        failed: [{ kind: "crawler_key", key: "<nobody>", words: "there is no crawler named <nobody>" }],
      }),
    ],
  );

  const page = await app.inject({ url: "/storage", headers: { accept: "text/html" } });
  const json = await app.inject("/api/storage");

  expect((json.json() as StorageAnswer).wentBack).toMatchObject([{ epoch: 2, replayed: 7 }]);
  expect(page.body).toMatch(
    /timeline 2, and was on 1<\/td><td[^>]*>7<\/td>.*no crawler named &lt;nobody&gt;/,
  );
  await database.pool.query("delete from database_epoch where epoch = 2");
});

it("nearcrawl storage goes by what operators have changed", async () => {
  await createPolicyStore(database.pool).save(
    {
      ...{ changedAt: worldNow, changedBy: "anna", words: "disk", takesBack: null },
      changes: [{ name: "retention.fetchDays", before: null, after: 7 }],
    },
    0,
  );

  const { url, schema } = database;
  const { code, out } = await inProcess(commandNamed("storage"), ["--database-url", url, "--schema", schema]);

  expect(code).toBe(0);
  expect(out).toMatch(/page_fetch .* 2,000 +7 days \(retention.fetchDays\) +2026-02-2\d .*dropped by day/);
});
