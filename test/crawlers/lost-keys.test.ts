/** Keys without confirmation: no crash locks a crawler out, and no such key stays valid forever. */
import { randomUUID } from "node:crypto";
import { afterEach, beforeAll, expect, test } from "vitest";
import type { CrawlerId } from "#core/ids";
import { forThisFile } from "../support/for-this-file.ts";
import { type IdentityWorld, invitedScopes, newIdentityWorld } from "./identity-world.ts";

const world = await forThisFile(newIdentityWorld());
let identities: IdentityWorld["identities"];
let invitations: IdentityWorld["invitations"];
beforeAll(async () => {
  ({ identities, invitations } = world);
});
afterEach(async () => await world.forget());

/** Keys end by the database's clock, so these tests begin now. */
const start = new Date();
const hours = (count: number) => new Date(start.getTime() + count * 3_600_000);
const days = (count: number) => hours(24 * count);

/** A crawler that has redeemed its invitation, and was sent the key `first`. */
async function joining() {
  const { secretHash } = await world.invite({ name: "athens", createdAt: start, expiresAt: days(30) });
  const shown = { secretHash, name: "athens", publicKey: "an identity" };
  const redeem = async (now: Date, keyHash: string = randomUUID()) =>
    await identities.redeem({ ...shown, keyHash, now });
  const redeemed = await redeem(start, "first");
  if ("refused" in redeemed) throw new Error(redeemed.refused.type);
  return { crawlerId: redeemed.crawlerId, redeem };
}

const issue = async (crawlerId: CrawlerId, keyHash: string, now: Date) =>
  await identities.issueKey({ crawlerId, keyHash, scopes: invitedScopes }, now);
const opens = async (keyHash: string) => (await world.crawlers.authenticate("athens", keyHash)) !== null;
const show = async (keyHash: string, now: Date) => {
  const holder = await world.crawlers.authenticate("athens", keyHash);
  await identities.noteKeyUse(holder!, now);
};
const endOf = async (keyHash: string) =>
  (
    await world.rows<{ at: Date | null }>(
      `select expires_at as at from crawler_key where key_hash = '${keyHash}'`,
    )
  )[0]?.at;
const isDue = async (crawlerId: CrawlerId, now: Date, resendMs = 60_000) =>
  (await identities.dueRotations([crawlerId], { maxAgeDays: 90, resendMs, now })).length === 1;

test("a redeemed invitation whose key was never stored opens nothing after three days", async () => {
  const { redeem } = await joining();
  const stateAt = async (now: Date) => (await invitations.list(now))[0]?.state;

  const inTime = await redeem(hours(71));
  const late = await redeem(days(3));

  expect(inTime).toMatchObject({ scopes: invitedScopes });
  expect(late).toEqual({ refused: { type: "expired", at: days(3) } });
  expect([await stateAt(hours(71)), await stateAt(days(3))]).toEqual(["joining", "expired"]);
});

test("a connected crawler that never confirmed its first key is sent another one, after a while", async () => {
  const { crawlerId } = await joining();

  expect(await isDue(crawlerId, new Date(start.getTime() + 59_000), 0)).toBe(false);
  expect(await isDue(crawlerId, hours(1))).toBe(true);
  await issue(crawlerId, "second", hours(1));
  expect(await isDue(crawlerId, hours(1))).toBe(false);
  await identities.keyKept(crawlerId, hours(1));
  expect(await isDue(crawlerId, hours(2))).toBe(false);
});

test("an unconfirmed key stays valid for the grace period after the next was sent", async () => {
  const { crawlerId } = await joining();
  await identities.keyKept(crawlerId, start);

  await issue(crawlerId, "second", start);
  await issue(crawlerId, "third", hours(1));

  expect(await endOf("second")).toEqual(hours(25));
  expect(await endOf("third")).toBeNull();
  expect([await opens("second"), await opens("third")]).toEqual([true, true]);
});

test("a key that is shown stays valid, although a later one was sent or confirmed", async () => {
  const { crawlerId } = await joining();
  await identities.keyKept(crawlerId, start);
  await issue(crawlerId, "second", start);
  await issue(crawlerId, "third", hours(1));
  // The crawler confirmed the second; the third never arrived.
  await identities.keyKept(crawlerId, hours(1));

  await show("second", hours(2));
  const whenShown = [await endOf("second"), await endOf("third")];
  await show("third", hours(3));

  expect(whenShown).toEqual([null, null]);
  expect(await endOf("second")).toEqual(hours(27));
  expect(await endOf("first")).toEqual(hours(25));
});

test("an earlier key first shown after a later one was used still ends", async () => {
  const { crawlerId } = await joining();
  await identities.keyKept(crawlerId, start);
  await issue(crawlerId, "second", start);
  await issue(crawlerId, "third", hours(1));
  await show("third", hours(2));

  await show("second", hours(3));
  await identities.keyKept(crawlerId, hours(4));

  expect(await endOf("second")).toEqual(hours(25));
  expect(await endOf("third")).toBeNull();
});

test("keys that never arrived are deleted after their end", async () => {
  const { crawlerId } = await joining();
  await identities.keyKept(crawlerId, start);
  await issue(crawlerId, "second", start);
  await issue(crawlerId, "third", hours(1));

  await issue(crawlerId, "fourth", hours(25));

  expect(await world.rows("select key_hash from crawler_key order by key_id")).toEqual(
    ["first", "third", "fourth"].map((key_hash) => ({ key_hash })),
  );
});
