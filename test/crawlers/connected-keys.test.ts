/** Keys of connected crawlers: replaced, revoked, and for measurements only. */
import { afterEach, expect, it } from "vitest";
import { createFrontierStore } from "#coordinator/crawl/frontier/frontier-store";
import { createCrawlerStore } from "#coordinator/place/crawlers/crawler-store";
import { createFleetKeys } from "#coordinator/place/crawlers/identity-store";
import { shutOutAtOnce } from "#coordinator/tell/fleet/crawler-deeds-ask";
import { folderOf } from "../gateway/crawler-folder.ts";
import { newJoiningWorld } from "../gateway/joining-world.ts";
import { forThisFile } from "../support/for-this-file.ts";
import { until } from "../support/until.ts";

const world = await forThisFile(newJoiningWorld());
afterEach(async () => await world.reset());

it("a connected crawler gets its new key, and the old one stays valid for the grace period", async () => {
  const folder = await world.joined("athens");
  const old = folder.key;
  const { crawler, keyKept } = await world.come(folder);

  await createFleetKeys(world.pool).askRotation("athens", { graceHours: 2, now: new Date() });
  const given = await crawler.next("coordinator:key");
  await keyKept();
  await until(async () => (await world.keptKeys("athens")) === 2, 5000);
  await world.leave(crawler, "athens");
  // The new key first, because showing the old one makes the coordinator send another.
  folder.key = given.key;
  const withNew = await world.come(folder);
  await world.leave(withNew.crawler, "athens");
  folder.key = old;
  const withOld = await world.come(folder);
  await world.leave(withOld.crawler, "athens");
  await world.rows("update crawler_key set expires_at = expires_at - interval '2 hours 1 minute'");
  const withOldLater = await world.come(folder);

  expect(given).toMatchObject({ oldKeySeconds: 7200, scopes: ["probe", "crawl"] });
  expect(given.key).not.toBe(old);
  expect(withOld.welcome).not.toBeNull();
  expect(withOldLater.refuse).toMatchObject({ code: "wrong-key" });
  expect(withNew.welcome).not.toBeNull();
});

it("a key of 90 days is replaced when its crawler connects; one that never arrived is replaced again", async () => {
  const folder = await world.joined("athens");
  await world.rows("update crawler_key set created_at = created_at - interval '91 days'");

  const first = await world.come(folder);
  const lost = await first.crawler.next("coordinator:key");
  await world.leave(first.crawler, "athens");
  const second = await world.come(folder);
  const given = await second.crawler.next("coordinator:key");

  expect(given.key).not.toBe(lost.key);
  expect(given.oldKeySeconds).toBe(24 * 3600);
  await world.leave(second.crawler, "athens");
});

it("a revoked crawler loses its session at once, and returns only with a new identity", async () => {
  const folder = await world.joined("athens");
  const { refused } = await world.come(folder);

  await createFleetKeys(world.pool).revoke("athens", new Date());
  const refuse = await refused;
  const back = await world.come(folder);
  const renewed = folderOf("athens", (await world.invite("athens", { renews: true })).secret);
  const again = await world.come(renewed);
  const oldFolder = await world.come(folder);

  expect(refuse).toMatchObject({ code: "revoked", retry: false });
  expect(back.refuse).toMatchObject({ code: "revoked" });
  expect(again.welcome).not.toBeNull();
  expect(oldFolder.refuse).toMatchObject({ code: "wrong-key" });
  await world.leave(again.crawler, "athens");
});

it("a crawler revoked before it stored its key is not admitted by its invitation", async () => {
  const folder = folderOf("athens", (await world.invite("athens")).secret);
  const { refused } = await world.come(folder);

  await createFleetKeys(world.pool).revoke("athens", new Date());
  const refuse = await refused;
  const back = await world.come(folder);

  expect(refuse).toMatchObject({ code: "revoked", retry: false });
  expect(back.refuse).toMatchObject({ code: "revoked", retry: false });
});

it("a crawler revoked while it arrives is refused after its welcome", async () => {
  const folder = await world.joined("athens");
  // Revokes it between the check of its key and its welcome, when no notification reaches it.
  await world.pool.query(`
    create function shut_out() returns trigger language plpgsql as
      'begin new.revoked_at := now(); return new; end';
    create trigger shut_out before update of seen_address on crawler for each row execute function shut_out()`);

  const { welcome, refused } = await world.come(folder);

  expect(welcome).not.toBeNull();
  expect(await refused).toMatchObject({ code: "revoked", retry: false });
  await world.pool.query("drop function shut_out cascade");
});

it("a new identity ends the session of the former one", async () => {
  const folder = await world.joined("athens");
  const { refused } = await world.come(folder);
  const renewed = folderOf("athens", (await world.invite("athens", { renews: true })).secret);

  const again = await world.come(renewed);

  expect(await refused).toMatchObject({ code: "replaced" });
  expect(again.welcome).not.toBeNull();
  await world.leave(again.crawler, "athens");
});

it("a killed crawler loses its session and hands its subnets over at once", async () => {
  const folder = await world.joined("athens");
  const { refused } = await world.come(folder);
  const ports = {
    keys: createFleetKeys(world.pool),
    crawlers: createCrawlerStore(world.pool),
    frontier: createFrontierStore(world.pool),
  };

  const leases = await shutOutAtOnce("athens", ports, new Date());

  expect(leases).toBe(0);
  expect(await refused).toMatchObject({ code: "revoked" });
  await until(async () => (await world.stateOf("athens")) === "offline", 5000);
  const rows = await world.rows("select drain_asked_by, revoked_at from crawler");
  expect(rows).toEqual([{ drain_asked_by: "operator", revoked_at: expect.any(Date) }]);
  expect(await shutOutAtOnce("berlin", ports, new Date())).toBeNull();
});

it("a crawler that may only measure gets no work, with the reason", async () => {
  const folder = await world.joined("athens", { scopes: ["probe"] });
  const { crawler } = await world.come(folder);

  await crawler.send({ type: "crawler:ready", freeHosts: 3 });
  const tasks = await crawler.next("coordinator:tasks");

  expect(tasks).toMatchObject({ leases: [], reason: "this crawler's key is for measurements only" });
  await world.leave(crawler, "athens");
});
