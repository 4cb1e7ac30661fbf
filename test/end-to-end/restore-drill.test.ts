/**
 * The restore drill: a backup in the middle of a crawl, then changes that the backup lacks; the data folder is removed under
 * the running server, and the backup restored under a coordinator and crawlers that keep running. No crawler is refused, sites
 * that opted out are not requested, a removed crawler stays out, and everything that is missing is fetched again.
 */
import { existsSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { createFleetKeys } from "#coordinator/place/crawlers/identity-store";
import { currentEpoch } from "#coordinator/run/journal/epoch-store";
import { JournalFolder } from "#coordinator/run/journal/journal-file-store";
import { createOptOutStore } from "#coordinator/run/opt-outs/store";
import { createIncidentStore } from "#coordinator/tell/fleet/incident-store";
import { backupDatabase } from "#db/backup-database";
import { openDatabase } from "#db/connect";
import { dataFolderOf } from "#db/embedded-cluster";
import { startEmbeddedPostgres, stopEmbeddedPostgres } from "#db/embedded-postgres";
import { migrate } from "#db/migrate";
import { restoreDatabase } from "#db/restore-database";
import { generateWorld } from "#ops/world/generate-world";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { until } from "../support/until.ts";
import { type EmulatedFleet, emulatedFleet, frontPages } from "./emulated-fleet.ts";

const world = generateWorld({ seed: 29, sites: 8, crawlers: 3 });
const [left, ...others] = world.sites;
const removed = world.crawlers[2]!.name;
const home = temporaryFolder("nearcrawl-drill-");
const scope = { pagesPerHost: 4, maxDepth: 3, admitNewHosts: false };

let fleet: EmulatedFleet;
beforeAll(async () => {
  const database = await openDatabase({ databaseUrl: null, home, schema: "world", maxConnections: 20 });
  await migrate(database);
  fleet = await emulatedFleet({
    ...{ world, database, hasRegistry: false, haveJoined: true, journalRoot: join(home, "journal") },
    settings: {
      ...{ scope, delegation: { settleSeconds: 0 } },
      lease: { seconds: 3, urlsPerHost: 2, hostsPerRequest: 4, addressRestSeconds: 0 },
    },
    crawlerSettings: { politenessFloorMs: 100 },
  });
});
afterAll(async () => {
  await fleet?.close();
  await stopEmbeddedPostgres(home);
});

const urls = async () =>
  (await fleet.rows<{ url: string }>("select url from page order by url").catch(() => [])).map(
    ({ url }) => url,
  );
const isCrawled = async () => {
  const { open, hosts } = await fleet
    .one<{ open: number; hosts: number }>(
      `select (select count(*)::int from frontier_url u join frontier_host h using (host_hash)
               where u.state = 'due' and u.visits = 0 and h.opt_out_id is null)
           + (select count(*)::int from lease where closed_at is null) as open,
         (select count(distinct host_hash)::int from page) as hosts`,
    )
    .catch(() => ({ open: 1, hosts: 0 }));
  return open === 0 && hosts >= others.length;
};
const online = async () =>
  (await fleet.rows<{ name: string }>("select name from crawler where state <> 'offline' order by name")).map(
    ({ name }) => name,
  );
const journaled = async () => {
  const { databaseId } = await currentEpoch(fleet.database.pool);
  return (await new JournalFolder(join(home, "journal", databaseId)).read()).entries.map(
    ({ kind, key }) => `${kind} ${key.trim()}`,
  );
};

it("crawl, back up, continue, opt out, remove, lose the data folder, restore", {
  timeout: 90_000,
}, async () => {
  const first = await fleet.addCoordinator();
  await fleet.startAll();
  await fleet.admit(frontPages(world.sites), { ...scope, admitNewHosts: true });
  await until(async () => (await urls()).length >= 4, 30_000);
  for (const index of world.crawlers.keys()) await fleet.stopOne(index);
  const backup = await backupDatabase(home);
  const atBackup = await urls();

  for (const index of world.crawlers.keys()) await fleet.restartOne(index);
  await until(isCrawled, 30_000);
  const everything = await urls();
  for (const index of [0, 1, 0]) await fleet.restartOne(index);
  await until(async () => (await online()).length === 3, 10_000);
  await createOptOutStore(fleet.database.pool).request(
    {
      target: { site: left!.host, network: null },
      ...{ source: "operator", words: "by letter", replyTo: null, requester: null, confirmed: true },
    },
    new Date(),
  );
  await createFleetKeys(fleet.database.pool).revoke(removed, new Date());
  await until(async () => (await online()).length === 2, 10_000);
  await until(async () => new Set(await journaled()).has(`opt_out ${left!.host}`), 10_000);

  rmSync(dataFolderOf(home), { recursive: true, maxRetries: 5 });
  const ready = async () => await (await fetch(new URL("/ready", first.webUrl))).text();
  await until(async () => (await ready()).includes("data-folder-gone"), 10_000);
  expect(await ready()).toMatch(/^{"ready":false,"reason":"the data folder is gone: restore it/);
  // Opening it makes no empty database and names the command to type.
  await expect(startEmbeddedPostgres(home)).rejects.toThrow(
    `nearcrawl database restore ${backup.folder} --home ${home}`,
  );
  expect(existsSync(dataFolderOf(home))).toBe(false);
  const restored = await restoreDatabase(home, backup.folder, { confirmed: true });
  await startEmbeddedPostgres(home);
  const why = await first.hasToStartOver;
  await fleet.stopCoordinator(first);
  await fleet.addCoordinator(Number(new URL(first.webUrl).port));

  expect(atBackup.length).toBeLessThan(everything.length);
  expect(why).toContain(`timeline ${restored.timeline}`);
  await until(async () => (await online()).length === 2, 30_000);
  await until(isCrawled, 30_000);
  const kept = everything.filter((url) => new URL(url).host !== left!.host);
  await until(async () => (await urls()).length === kept.length, 10_000);
  expect(await urls()).toEqual(kept);
  const [optOut] = await createOptOutStore(fleet.database.pool).list({ open: true, most: 5 });
  expect(optOut).toMatchObject({ target: left!.host, state: "confirmed", pages: 0 });
  expect(await online()).toEqual(
    world.crawlers
      .slice(0, 2)
      .map(({ name }) => name)
      .sort(),
  );
  expect(
    await fleet.one("select revoked_at is not null as out from crawler where name = $1", [removed]),
  ).toEqual({ out: true });
  const incidents = await createIncidentStore(fleet.database.pool).list({ since: new Date(0) });
  expect(incidents.map(({ kind }) => kind)).not.toContain("copied-folder");
  // One fetch of each URL counts: only what the backup lacked was fetched again.
  const twice = await fleet.rows(
    "select url_hash from page_fetch group by host_hash, url_hash having count(*) > 1",
  );
  expect(twice).toEqual([]);
});
