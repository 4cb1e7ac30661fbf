/** Signing keys at the coordinator: announced, published, replaced, refused, gone with their crawler. */
import { randomUUID } from "node:crypto";
import { afterEach, describe, expect, it } from "vitest";
import { createFleetKeys } from "#coordinator/place/crawlers/identity-store";
import { createFleetOutside } from "#coordinator/place/crawlers/public-list-reads";
import { createSigningKeyStore } from "#coordinator/place/crawlers/signing-key-store";
import {
  announcementsPerHour,
  mostPublishedKeys,
  SigningKeyDesk,
} from "#coordinator/place/crawlers/signing-keys";
import { asCrawlerId, type CrawlerId } from "#core/ids";
import type { Incident } from "#core/incidents";
import { silentLog } from "#core/log";
import { type SigningKeyAnnouncement, signingKeyText } from "#protocol/signing-key";
import type { CrawlerFolder } from "../gateway/crawler-folder.ts";
import { newJoiningWorld } from "../gateway/joining-world.ts";
import { type TestIdentity, testIdentity } from "../gateway/sealing-crawler.ts";
import { forThisFile } from "../support/for-this-file.ts";
import { until } from "../support/until.ts";

const signing = { publicUrl: "https://crawl.example.org", signRequests: true };
const world = await forThisFile(newJoiningWorld(signing));
afterEach(async () => await world.reset());

const noon = new Date("2026-03-01T12:00:00Z");
const later = (seconds: number) => new Date(noon.getTime() + seconds * 1000);
const rule = { maxAgeDays: 30, now: noon };
const withSigningKeys = { change: <Hello extends object>(hello: Hello) => ({ ...hello, signingKeys: true }) };

function announcement(identity: TestIdentity, key: TestIdentity, at = noon): SigningKeyAnnouncement {
  const said = { publicKey: key.publicKey, at: at.toISOString() };
  const text = signingKeyText({ identity: identity.publicKey, ...said });
  return { type: "crawler:signing-key", ...said, signature: identity.sign(text), possession: key.sign(text) };
}

/** A crawler that makes signing keys, and a desk of its own. */
async function announcing(name: string) {
  const { folder, crawlerId } = await member(name);
  const incidents: Incident[] = [];
  const signingKeys = createSigningKeyStore(world.pool);
  const note = (incident: Incident) => incidents.push(incident);
  const desk = new SigningKeyDesk({ signingKeys, incidents: { note }, log: silentLog });
  const announce = async (key: TestIdentity, now = noon, identity = folder.identity) =>
    await desk.take(crawlerId, announcement(identity, key, now), { ...rule, now });
  return { folder, crawlerId, desk, announce, incidents, signingKeys };
}

async function member(name: string): Promise<{ folder: CrawlerFolder; crawlerId: CrawlerId }> {
  const folder = await world.joined(name);
  const [row] = await world.rows(
    "update crawler set signing_keys_since = '-infinity' where name = $1 returning crawler_id",
    [name],
  );
  return { folder, crawlerId: asCrawlerId(Number(row!.crawler_id)) };
}

const publishedAt = async (now: Date) =>
  (await createFleetOutside(world.pool).publicKeys(now)).map(({ publicKey }) => publicKey);

describe("an announced signing key", () => {
  it("is published at once, usable once caches know it, and unchanged when announced again", async () => {
    const { announce, folder } = await announcing("athens");
    const key = testIdentity();

    const first = await announce(key);
    const again = await announce(key, later(100));
    const known = await announce(key, later(400));
    const keys = await createFleetOutside(world.pool).publicKeys(later(1));

    expect(first).toMatchObject({ published: { useInSeconds: 300, expiresAt: "2026-04-07T12:00:00.000Z" } });
    expect(again).toMatchObject({ published: { useInSeconds: 200, expiresAt: "2026-04-07T12:00:00.000Z" } });
    expect(known).toMatchObject({ published: { useInSeconds: 0 } });
    expect(keys).toEqual([{ publicKey: key.publicKey, from: noon, until: new Date("2026-04-07T12:00:00Z") }]);
    expect(await publishedAt(noon)).not.toContain(folder.identity.publicKey);
  });

  it("leaves its predecessor published until everything that it signed is out of date", async () => {
    const { announce, incidents } = await announcing("athens");
    const [old, next] = [testIdentity(), testIdentity()];
    await announce(old);

    await announce(next, later(86_400));
    const answerOfOld = await announce(old, later(86_400 + 60));

    expect(answerOfOld.published?.expiresAt).toBe(later(86_400 + 900).toISOString());
    expect(await publishedAt(later(86_400 + 899))).toEqual([old.publicKey, next.publicKey]);
    expect(await publishedAt(later(86_400 + 901))).toEqual([next.publicKey]);
    expect(await announce(old, later(86_400 + 901))).toMatchObject({
      published: null,
      refusal: "ended",
      reason: "this key was replaced, or its time is over: make another",
    });
    expect(incidents).toEqual([]);
  });

  it("is unpublished with its crawler's access, and with its identity", async () => {
    const athens = await announcing("athens");
    const berlin = await announcing("berlin");
    const [key, renewed] = [testIdentity(), testIdentity()];
    await athens.announce(testIdentity());
    await berlin.announce(key);

    await createFleetKeys(world.pool).revoke("athens", noon);
    await world.rows("update crawler set public_key = $1 where name = 'berlin'", [renewed.publicKey]);

    expect(await publishedAt(later(1))).toEqual([]);
    expect(await berlin.announce(key, noon, renewed)).toMatchObject({ refusal: "taken" });
    expect(await athens.announce(testIdentity())).toMatchObject({ refusal: "bad-signature" });
  });
});

describe("an announcement", () => {
  it("of another crawler's key or identity is refused", async () => {
    const athens = await announcing("athens");
    const berlin = await announcing("berlin");
    const key = testIdentity();
    await athens.announce(key);

    const stolen = await berlin.announce(key);
    const identity = await berlin.announce(athens.folder.identity);

    expect(stolen).toMatchObject({ published: null, refusal: "taken" });
    expect(identity).toMatchObject({ published: null, refusal: "taken" });
    expect(berlin.incidents.map(({ kind }) => kind)).toEqual(["signing-key-refused", "signing-key-refused"]);
    expect(berlin.incidents[0]?.words).toBe(
      "a signing key was refused: this key is another crawler's, or an identity's: make another",
    );
  });

  it("needs the signatures of the identity and of the key itself", async () => {
    const { desk, crawlerId, folder, announce } = await announcing("athens");
    const [key, other] = [testIdentity(), testIdentity()];
    const good = announcement(folder.identity, key);

    const foreign = await announce(key, noon, other);
    const unproven = await desk.take(crawlerId, { ...good, publicKey: other.publicKey }, rule);
    const claimed = await desk.take(
      crawlerId,
      { ...announcement(folder.identity, other), possession: good.possession },
      rule,
    );

    expect([foreign, unproven, claimed].map(({ refusal }) => refusal)).toEqual(
      Array(3).fill("bad-signature"),
    );
    expect(claimed.reason).toBe("the announcement is not signed with the key that it announces");
    expect(await publishedAt(noon)).toEqual([]);
  });

  it("of a crawler with a wrong clock is refused", async () => {
    const { desk, crawlerId, folder } = await announcing("athens");
    const at = (seconds: number) => announcement(folder.identity, testIdentity(), later(seconds));

    const ahead = await desk.take(crawlerId, at(3600), rule);
    const behind = await desk.take(crawlerId, at(-61), rule);
    const near = await desk.take(crawlerId, at(59), rule);

    expect(ahead).toMatchObject({
      refusal: "clock",
      reason: "the crawler's clock is 3600 s ahead of the coordinator's: let NTP keep it",
    });
    expect(behind).toMatchObject({ refusal: "clock" });
    expect(near.published).not.toBeNull();
  });

  it("is one of 10,000: a few are published, the others cost no query, and are counted", async () => {
    const { desk, crawlerId, announce, incidents, signingKeys } = await announcing("athens");
    const lookedAt = { identities: 0 };
    const identityOf = signingKeys.identityOf;
    signingKeys.identityOf = async (asked) => {
      lookedAt.identities += 1;
      return await identityOf(asked);
    };
    for (let made = 0; made < mostPublishedKeys; made++) await announce(testIdentity());

    const fifth = await announce(testIdentity());
    const flood = { ...announcement(testIdentity(), testIdentity()) };
    const answers = new Map<string, number>();
    for (let sent = 0; sent < 10_000; sent++) {
      const { reason } = await desk.take(crawlerId, flood, rule);
      answers.set(reason, (answers.get(reason) ?? 0) + 1);
    }

    expect(fifth.refusal).toBe("too-many");
    expect(fifth.reason).toMatch(/^4 of this crawler are published, one until 2026-03-01T12:15:00/);
    expect(lookedAt.identities).toBe(announcementsPerHour);
    expect(answers.get("more than 60 were announced within an hour")).toBe(10_000 - 60 + 5);
    expect(incidents).toHaveLength(10_001);
    expect(await publishedAt(noon)).toHaveLength(mostPublishedKeys);
  });
});

describe("crawlers of older and newer versions", () => {
  it("an older crawler is published by its identity, until minutes after it makes signing keys", async () => {
    const folder = await world.joined("athens");
    const { publicKey } = folder.identity;
    const older = await world.come(folder);
    const before = await publishedAt(new Date());
    await world.leave(older.crawler, "athens");

    const newer = await world.come(folder, withSigningKeys);
    const now = new Date();
    const just = await publishedAt(now);
    const afterwards = await publishedAt(new Date(now.getTime() + 901_000));
    await world.leave(newer.crawler, "athens");
    const back = await world.come(folder);

    expect(older.welcome?.signingKeys).toBeUndefined();
    expect(newer.welcome?.signingKeys).toBe(true);
    expect([before, just, afterwards]).toEqual([[publicKey], [publicKey], []]);
    expect(await publishedAt(new Date(now.getTime() + 901_000))).toEqual([publicKey]);
    await world.leave(back.crawler, "athens");
  });

  it("a crawler that always made signing keys is never published by its identity", async () => {
    const folder = await world.joined("athens");

    const { crawler } = await world.come(folder, withSigningKeys);

    expect(await publishedAt(new Date())).toEqual([]);
    await world.leave(crawler, "athens");
  });
});

describe("another signing key", () => {
  it("is requested after 30 days or by an operator, until one is announced", async () => {
    const { crawlerId, announce, signingKeys } = await announcing("athens");
    const due = async (days: number) =>
      await signingKeys.dueRenewals([crawlerId], { maxAgeDays: 30, now: later(86_400 * days) });
    expect(await due(0)).toEqual([]);
    await announce(testIdentity());

    const young = await due(29);
    const old = await due(30);
    await createFleetKeys(world.pool).askSigningKey("athens", later(60));
    const asked = await due(1);
    await announce(testIdentity(), later(120));

    expect(young).toEqual([]);
    expect(old).toEqual([{ crawlerId, isAsked: false }]);
    expect(asked).toEqual([{ crawlerId, isAsked: true }]);
    expect(await due(1)).toEqual([]);
  });

  it("is requested at once from a connected crawler", async () => {
    const { folder } = await member("athens");
    const { crawler } = await world.come(folder, { ...withSigningKeys, instanceId: randomUUID() });
    const key = testIdentity();
    await crawler.send(announcement(folder.identity, key, new Date()));
    const answer = await crawler.next("coordinator:signing-key");

    await createFleetKeys(world.pool).askSigningKey("athens", new Date());
    const asked = await crawler.next("coordinator:renew-signing-key");

    expect(answer).toMatchObject({ publicKey: key.publicKey, refusal: null });
    expect(asked.reason).toBe("an operator asked for it");
    await world.leave(crawler, "athens");
  });

  it("announced with nonsense ends this session only, with the reason", async () => {
    const { folder } = await member("athens");
    const { crawler, refused } = await world.come(folder, withSigningKeys);
    const good = announcement(folder.identity, testIdentity(), new Date());

    await crawler.send({ ...good, publicKey: "x".repeat(5000) });

    expect((await refused)?.reason).toMatch(/^crawler:signing-key: publicKey/);
    await until(async () => (await world.stateOf("athens")) === "offline", 5000);
  });
});
