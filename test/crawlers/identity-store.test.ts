/** Stored invitations, keys and tickets, also under concurrency. */
import { randomUUID } from "node:crypto";
import { afterEach, expect, test } from "vitest";
import { distrustCrawler } from "#coordinator/crawl/trust/distrust-writes";
import type { Redemption, RedemptionFault } from "#coordinator/place/crawlers/identity";
import { createFleetKeys } from "#coordinator/place/crawlers/identity-store";
import { createOperatorTokenStore } from "#coordinator/run/access/session-store";
import { fleetIdentities } from "#coordinator/tell/fleet/fleet-reads";
import { createIncidentStore } from "#coordinator/tell/fleet/incident-store";
import { hashCrawlerKey } from "#coordinator/web/secrets";
import { asCrawlerId, type CrawlerId } from "#core/ids";
import { forThisFile } from "../support/for-this-file.ts";
import { noon, secondsAfterNoon } from "../support/store-world.ts";
import { newIdentityWorld } from "./identity-world.ts";

const world = await forThisFile(newIdentityWorld());
const { identities, invitations } = world;
afterEach(async () => await world.forget());

const hour = 3600;

const invited = async (name: string, changes: { renews?: boolean; pagesPerDay?: number } = {}) =>
  await world.invite({ name, createdAt: noon, expiresAt: secondsAfterNoon(hour), ...changes });

const redemption = (secretHash: string, name: string, publicKey: string, now: Date = noon): Redemption => ({
  secretHash,
  name,
  publicKey,
  keyHash: hashCrawlerKey(randomUUID()),
  now,
});

const faultOf = async (given: Redemption): Promise<RedemptionFault["type"] | null> => {
  const redeemed = await identities.redeem(given);
  return "refused" in redeemed ? redeemed.refused.type : null;
};

async function redeemed(name: string): Promise<{ crawlerId: CrawlerId; keyHash: string; publicKey: string }> {
  const { secretHash } = await invited(name);
  const given = redemption(secretHash, name, `identity of ${name}`);
  const made = await identities.redeem(given);
  if ("refused" in made) throw new Error(made.refused.type);
  return { crawlerId: made.crawlerId, keyHash: given.keyHash, publicKey: given.publicKey };
}

test("of twenty machines that show one invitation at once, one becomes the crawler", async () => {
  const { secretHash } = await invited("athens");

  const faults = await Promise.all(
    Array.from(
      { length: 20 },
      async (_, number) => await faultOf(redemption(secretHash, "athens", `machine ${number}`)),
    ),
  );

  expect(faults.filter((fault) => fault === null)).toHaveLength(1);
  expect(faults.filter((fault) => fault === "used")).toHaveLength(19);
  expect(await world.rows("select from crawler")).toHaveLength(1);
});

test("an invitation is refused with the kind of its fault", async () => {
  const { secretHash, made } = await invited("athens");
  await redeemed("berlin");
  const late = redemption(secretHash, "athens", "a", secondsAfterNoon(hour));

  expect(await faultOf(redemption(hashCrawlerKey("guess"), "athens", "a"))).toBe("unknown");
  expect(await faultOf(redemption(secretHash, "cairo", "a"))).toBe("other-name");
  expect(await faultOf(late)).toBe("expired");
  expect(await faultOf(redemption(secretHash, "athens", "identity of berlin"))).toBe("identity-taken");
  expect(await invitations.revoke({ invitationId: made as number }, noon)).toBe(1);
  expect(await faultOf(redemption(secretHash, "athens", "a"))).toBe("revoked");
});

test("of two invitations for one name the second finds it taken, and none is made for a taken name", async () => {
  const [first, second] = [await invited("athens"), await invited("athens")];
  await identities.redeem(redemption(first.secretHash, "athens", "a"));

  expect(await faultOf(redemption(second.secretHash, "athens", "b"))).toBe("name-taken");
  expect((await invited("athens")).made).toBe("name-taken");
  expect((await invited("berlin", { renews: true })).made).toBe("no-such-crawler");
});

test("until its key is stored the same identity may redeem an invitation again, which ends the former key", async () => {
  const { secretHash } = await invited("athens", { pagesPerDay: 300 });
  const first = redemption(secretHash, "athens", "a");
  const second = redemption(secretHash, "athens", "a", secondsAfterNoon(2 * hour));

  await identities.redeem(first);
  const again = await identities.redeem(second);
  const { crawlerId } = again as { crawlerId: CrawlerId };

  expect(await world.crawlers.authenticate("athens", first.keyHash)).toBeNull();
  expect(await world.crawlers.authenticate("athens", second.keyHash)).toMatchObject({
    crawlerId,
    publicKey: "a",
  });
  expect((await invitations.list(noon)).map(({ state }) => state)).toEqual(["joining"]);
  await identities.keyKept(crawlerId, noon);
  expect(await faultOf(redemption(secretHash, "athens", "a"))).toBe("used");
  expect((await invitations.list(noon)).map(({ state }) => state)).toEqual(["joined"]);
  expect(await world.rows("select granted_pages_per_day as pages from crawler")).toEqual([{ pages: 300 }]);
});

test("a renewed crawler keeps its number, loses its keys and rejoins the fleet", async () => {
  const { crawlerId, keyHash } = await redeemed("athens");
  await identities.keyKept(crawlerId, noon);
  await createFleetKeys(world.pool).revoke("athens", noon);
  await world.crawlers.drain("athens", noon);
  const { secretHash } = await invited("athens", { renews: true });

  const renewed = await identities.redeem(redemption(secretHash, "athens", "another identity"));

  expect(renewed).toMatchObject({ crawlerId });
  expect(await world.crawlers.authenticate("athens", keyHash)).toBeNull();
  expect(await world.rows("select public_key, revoked_at, draining_since from crawler")).toEqual([
    { public_key: "another identity", revoked_at: null, draining_since: null },
  ]);
});

test("a renewed crawler that is distrusted keeps draining", async () => {
  const { crawlerId } = await redeemed("athens");
  await identities.keyKept(crawlerId, noon);
  const drain = { pagesSince: noon, mostPages: 1 };
  await distrustCrawler(world.pool, { crawlerId, words: "a test", now: secondsAfterNoon(1), drain });
  const { secretHash } = await invited("athens", { renews: true });

  await identities.redeem(redemption(secretHash, "athens", "another identity"));

  expect(await world.rows("select public_key, draining_since, drain_asked_by from crawler")).toEqual([
    { public_key: "another identity", draining_since: secondsAfterNoon(1), drain_asked_by: "trust" },
  ]);
});

test("a redeemed invitation opens nothing once its crawler is revoked or renewed", async () => {
  const { secretHash } = await invited("athens");
  const again = redemption(secretHash, "athens", "a");
  await identities.redeem(again);

  await createFleetKeys(world.pool).revoke("athens", noon);
  const afterTheEnd = await faultOf(again);
  const renewal = await invited("athens", { renews: true });
  await identities.redeem(redemption(renewal.secretHash, "athens", "another machine"));
  const afterTheRenewal = await faultOf(again);

  expect(afterTheEnd).toBe("shut-out");
  expect(afterTheRenewal).toBe("used");
});

test("an old key ends after the grace period, counted from when the new one was stored or first shown", async () => {
  const keys = createFleetKeys(world.pool);
  const ends = async () =>
    (await world.rows<{ at: Date | null }>("select expires_at as at from crawler_key order by key_id"))[0]
      ?.at;
  const { crawlerId } = await redeemed("athens");
  await identities.keyKept(crawlerId, noon);
  await keys.askRotation("athens", { graceHours: 2, now: noon });

  await identities.issueKey({ crawlerId, keyHash: "new", scopes: ["probe"] }, secondsAfterNoon(1));
  const whileUnderWay = await ends();
  const holder = await world.crawlers.authenticate("athens", "new");
  await identities.noteKeyUse(holder!, secondsAfterNoon(10));

  expect(whileUnderWay).toBeNull();
  expect(holder?.scopes).toEqual(["probe"]);
  expect(await ends()).toEqual(secondsAfterNoon(10 + 2 * hour));
});

test("a replacement requested after a key was made stays due when that key is stored", async () => {
  const { crawlerId } = await redeemed("athens");
  await createFleetKeys(world.pool).askRotation("athens", { graceHours: 2, now: secondsAfterNoon(1) });

  await identities.keyKept(crawlerId, secondsAfterNoon(2));

  const asked = { maxAgeDays: 90, resendMs: 60_000, now: secondsAfterNoon(3) };
  expect(await identities.dueRotations([crawlerId], asked)).toMatchObject([{ crawlerId, graceHours: 2 }]);
});

test("a key is due on request or by age, but not while another is under way or without an identity", async () => {
  const { crawlerId } = await redeemed("athens");
  await identities.keyKept(crawlerId, noon);
  const bare = await world.crawler("bare");
  const due = async (seconds: number) =>
    (
      await identities.dueRotations([crawlerId, bare], {
        maxAgeDays: 90,
        resendMs: 60_000,
        now: secondsAfterNoon(seconds),
      })
    ).map((one) => one.crawlerId);
  const day = 86_400;

  expect(await due(89 * day)).toEqual([]);
  expect(await due(91 * day)).toEqual([crawlerId]);
  expect(await createFleetKeys(world.pool).askRotation(null, { graceHours: 1, now: noon })).toEqual([
    { name: "athens", online: false },
  ]);
  expect(await due(1)).toEqual([crawlerId]);
  await identities.issueKey({ crawlerId, keyHash: "new", scopes: ["probe", "crawl"] }, noon);
  expect(await due(1)).toEqual([]);
  expect(await due(61)).toEqual([crawlerId]);
  await identities.keyKept(crawlerId, noon);
  expect(await due(61)).toEqual([]);
});

test("of twenty copies that show one ticket at once, nineteen are detected at their next arrival", async () => {
  const { crawlerId } = await redeemed("athens");
  const trade = async (shown: string | null, next: string) =>
    await identities.tradeTicket({
      ...{ crawlerId, shown, next, now: noon },
      ...{ instanceId: randomUUID(), address: "192.0.2.1" },
    });
  await trade(null, "first");

  const nexts = Array.from({ length: 20 }, (_, number) => `ticket ${number}`);
  const letIn = await Promise.all(nexts.map(async (next) => await trade("first", next)));
  const shown = await Promise.all(nexts.map(async (next) => await trade(next, `after ${next}`)));

  expect([letIn, shown].map((all) => all.filter((verdict) => "copied" in verdict).length)).toEqual([0, 19]);
});

test("a copied folder is reported until the crawler has a new identity", async () => {
  const { crawlerId } = await redeemed("athens");
  const seen = { crawlerId, kind: "copied-folder", words: "twice", remoteAddress: null };
  await createIncidentStore(world.pool).record({ ...seen, at: secondsAfterNoon(10) });
  const copiedAt = async () =>
    (await fleetIdentities(world.pool, secondsAfterNoon(60), [crawlerId])).get(crawlerId)?.copiedAt;

  const before = await copiedAt();
  const { secretHash } = await invited("athens", { renews: true });
  await identities.redeem(redemption(secretHash, "athens", "another identity", secondsAfterNoon(30)));

  expect(before).toEqual(secondsAfterNoon(10));
  expect(await copiedAt()).toBeNull();
});

test("revoked crawlers are found among others", async () => {
  const { crawlerId } = await redeemed("athens");

  expect(await identities.shutOut([crawlerId])).toEqual([]);
  await createFleetKeys(world.pool).revoke("athens", noon);

  expect(await identities.shutOut([crawlerId, asCrawlerId(99)])).toEqual([crawlerId]);
  expect(await createFleetKeys(world.pool).revoke("nobody", noon)).toBeNull();
});

test("a token is valid until it expires or is revoked, and its name is used once", async () => {
  const tokens = createOperatorTokenStore(world.pool);
  const given = { name: "one", scopes: ["fleet-read"], createdAt: noon } as const;

  expect(await tokens.create({ ...given, tokenHash: "h", expiresAt: secondsAfterNoon(60) })).toBe(true);
  expect(await tokens.create({ ...given, tokenHash: "i", expiresAt: null })).toBe(false);

  expect(await tokens.use("h", secondsAfterNoon(59))).toMatchObject({
    name: "one",
    lastUsedAt: secondsAfterNoon(59),
  });
  expect(await tokens.use("h", secondsAfterNoon(60))).toBeNull();
  expect(await tokens.revoke("one", noon)).toBe(true);
  expect(await tokens.revoke("one", noon)).toBe(false);
  expect(await tokens.use("h", noon)).toBeNull();
});
