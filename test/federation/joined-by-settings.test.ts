/** Two complete coordinators over TLS: the child has its parent in its settings and asks it on a timer. */
import { readFileSync } from "node:fs";
import { afterAll, beforeAll, expect, it } from "vitest";
import { readCoordinatorConfig } from "#coordinator/config";
import { inviteChild } from "#coordinator/crawl/federation/coordinators-ask";
import { HttpParentClient } from "#coordinator/crawl/federation/parent-client";
import { createCoordinatorStore } from "#coordinator/crawl/federation/related-store";
import { createFrontierStore } from "#coordinator/crawl/frontier/frontier-store";
import { type RunningCoordinator, startCoordinator } from "#coordinator/main";
import { readCoordinatorPlace } from "#coordinator/place/crawlers/coordinator-place-store";
import { randomSecrets } from "#coordinator/web/secrets";
import { silentLog } from "#core/log";
import type { Database } from "#db/server-database";
import { pinOf } from "#protocol/identity";
import { testDatabase } from "../support/database.ts";
import { scope, seeds } from "../support/store-world.ts";
import { until } from "../support/until.ts";

const pemFile = (name: string) => new URL(`../fixtures/tls/loopback.${name}.pem`, import.meta.url).pathname;

let above: Database;
let below: Database;
const running: RunningCoordinator[] = [];
beforeAll(async () => {
  [above, below] = await Promise.all([testDatabase(), testDatabase()]);
});
afterAll(async () => {
  for (const one of running.reverse()) await one.stop();
  await Promise.all([above, below].map(async (one) => await one?.close()));
});

async function start(database: Database, settings: object): Promise<void> {
  const config = readCoordinatorConfig({ listen: { port: 0 }, resolvers: ["127.0.0.1:9"], ...settings });
  running.push(await startCoordinator({ config, database, log: silentLog, version: "test" }));
}

const urlsOf = async ({ pool }: Database) =>
  (await pool.query<{ url: string }>("select url from frontier_url order by url")).rows.map(({ url }) => url);

it("an invitation goes into the child's settings, and URLs find their owners both ways", async () => {
  await start(above, { tls: { certificateFile: pemFile("cert"), keyFile: pemFile("key") } });
  const coordinators = createCoordinatorStore(above.pool);
  const place = async () => await readCoordinatorPlace(above.pool);
  const by = { createdBy: "anna", now: new Date() };
  const invited = await inviteChild("greek", { coordinators, secrets: randomSecrets, place }, by);
  const { parent } = invited;

  const child = { parent: { ...parent, owns: [".gr"] }, domainSets: ["not shop.gr"] };
  await start(below, { ...child, coordinators: { everySeconds: 0.1 } });
  await until(async () => (await coordinators.list(new Date())).children[0]?.state === "connected", 5000);
  await createFrontierStore(above.pool).admit(seeds("http://a.gr/", "http://b.com/"), scope, new Date());
  await createFrontierStore(below.pool).admit(seeds("http://c.gr/", "http://d.com/"), scope, new Date());

  await until(async () => (await urlsOf(below)).length === 2 && (await urlsOf(above)).length === 2, 5000);
  expect(await urlsOf(below)).toEqual(["http://a.gr/", "http://c.gr/"]);
  expect(await urlsOf(above)).toEqual(["http://b.com/", "http://d.com/"]);
  expect((await readCoordinatorPlace(below.pool))?.domainSets).toEqual(["not shop.gr"]);
  expect(parent.certificatePin).toBe(pinOf(readFileSync(pemFile("cert"))));
  const again = inviteChild("greek", { coordinators, secrets: randomSecrets, place }, by);
  await expect(again).rejects.toThrow(/already/);
  const message = {
    version: 1,
    coordinatorId: crypto.randomUUID(),
    owns: [".de"],
    linkId: null,
    received: 0,
    urls: [],
  };
  const ask = async (certificatePin: string | null) => {
    const client = new HttpParentClient({ ...parent, certificatePin });
    return await client.exchange(message).finally(async () => await client.close());
  };
  expect(await ask("A".repeat(43))).toMatchObject({
    type: "unreachable",
    words: expect.stringMatching(/its TLS key .* is not the one in parent.certificatePin/),
  });
  expect(await ask(null)).toMatchObject({
    type: "unreachable",
    words: expect.stringMatching(/self-signed certificate/),
  });
});
