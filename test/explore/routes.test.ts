/** The explorer's addresses over a seeded database: described answers, files, and refusals. */
import type { FastifyInstance } from "fastify";
import { afterAll, beforeAll, expect, it } from "vitest";
import { readState } from "#coordinator/load-state";
import { describeApi } from "#coordinator/open-api";
import { explorePart } from "#coordinator/tell/explore/start";
import { silentLog } from "#core/log";
import { testDatabase } from "../support/database.ts";
import { forThisFile } from "../support/for-this-file.ts";
import { faultsOf, type JsonSchema } from "../support/schema-check.ts";
import { seedWorld } from "../support/seed-world.ts";
import { webServer } from "../support/web-server.ts";

const database = await forThisFile(testDatabase());
let app: FastifyInstance;
beforeAll(async () => {
  await seedWorld(database.pool);
  const config = { recrawl: { intervalHours: 24 } } as never;
  const { pool } = database;
  const options = { patientPool: pool, pool, state: await readState(database), config, log: silentLog };
  app = webServer(database, { parts: [explorePart(options)] });
  await app.ready();
});
afterAll(async () => await app.close());

const get = async (url: string) => await app.inject({ url });

it.each([
  ["/api/explore", "ExploreMap"],
  ["/api/explore?at=ipv6&view=map", "ExploreMap"],
  ["/api/explore?view=tree&at=1.2.0.0/16", "ExploreTree"],
  ["/api/explore?state=waiting", "ExploreList"],
  ["/api/explore?view=countries", "ExploreCountries"],
])("%s answers as described", async (url, name) => {
  const { schemas } = describeApi().components as { schemas: Record<string, JsonSchema> };

  const answer = await get(url);

  expect(answer.statusCode).toBe(200);
  expect(faultsOf(answer.json(), schemas[name]!, schemas)).toEqual([]);
});

it("sends a whole list as CSV that no spreadsheet runs", async () => {
  await database.pool.query("update subnet set name = '=cmd()' where first_address = '5.6.0.0'");
  const { body, headers } = await get("/explore/subnets.csv");

  expect(headers["content-disposition"]).toBe('attachment; filename="nearcrawl-subnets.csv"');
  expect(body.split("\r\n").slice(0, 3)).toEqual([
    "range,name,holder,country,registry,state,crawler,decided_for,rtt_ms,delegated_at,pages_per_day,due_hosts,waiting,anycast,finer,subnets_within",
    "1.0.0.0/8,APNIC,,,iana,none,,,,,0,0,false,false,false,4",
    "1.2.0.0/16,EXAMPLE-NET,Example Networks,GR,apnic,delegated,athens,1.2.0.0/16,12.5,2026-03-01T11:10:01.000Z,0,0,false,false,false,3",
  ]);
});

it.each([
  `/explore?at=${"1".repeat(300)}`,
  "/explore?view=globe",
  "/explore?limit=1e9",
  "/explore?minRttMs=NaN",
  "/explore?after=<script>",
  "/explore/subnets.csv?state=lost",
])("refuses %s with the reason", async (url) => {
  const answer = await get(url);

  expect(answer.statusCode).toBe(400);
  expect(answer.body).not.toContain("<script>alert");
});

it("accepts unknown crawlers, countries and holders, and shows that nothing matches", async () => {
  const answer = await get("/api/explore?view=list&crawler=nobody%27s&holder=%25&country=ZZ");

  expect(answer.json()).toMatchObject({ subnets: [], count: 0 });
});
