/** Releases and the fleet on the database: offers, the effect of reports, and automatic stages. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { readCoordinatorConfig } from "#coordinator/config";
import { type RunningCoordinator, startCoordinator } from "#coordinator/main";
import { createCrawlerStore } from "#coordinator/place/crawlers/crawler-store";
import { createReleaseFleetStore } from "#coordinator/run/releases/fleet-store";
import {
  advanceReleases,
  holdRelease,
  ReleaseOffers,
  stageRelease,
} from "#coordinator/run/releases/move-stage";
import { createReleaseKeyStore, createReleaseStore } from "#coordinator/run/releases/release-store";
import type { ReleaseState } from "#coordinator/run/releases/staging";
import { fleetList } from "#coordinator/tell/fleet/fleet-reads";
import { hashCrawlerKey } from "#coordinator/web/secrets";
import type { CrawlerId } from "#core/ids";
import { silentLog } from "#core/log";
import type { CoordinatorMessage } from "#protocol/coordinator-messages";
import type { CrawlerHello } from "#protocol/messages";
import { signBody } from "#protocol/release-envelope";
import { keyOf } from "../gateway/gateway-on-loopback.ts";
import { RawCrawler } from "../gateway/raw-crawler.ts";
import { testDatabase } from "../support/database.ts";
import { hello, newFlowWorld } from "../support/flow-world.ts";
import { forThisFile } from "../support/for-this-file.ts";
import {
  manifestOf,
  newReleaseKey,
  publishedRelease,
  releaseNow,
  signedRevocations,
  testReleaseKey,
} from "../support/releases.ts";
import { secondsAfterNoon } from "../support/store-world.ts";
import { until } from "../support/until.ts";

const minutes = (count: number) => secondsAfterNoon(count * 60);

const world = await forThisFile(newFlowWorld());
beforeEach(async () => {
  await world.reset();
  await world.pool.query(
    "truncate release_key, release_key_rotation, release_revocation, release_timestamp, release_bundle, release, release_offer",
  );
});

describe("an offer", () => {
  test("goes once per session to crawlers in the stage that have a supervisor", async () => {
    const fleet = await newFleet("athens", "oslo");
    const byHand = await world.arrived("by-hand");
    fleet.connected.push(byHand);
    await fleet.comes(byHand, {});
    const { digest } = await publishedRelease(world.pool, { version: "1.1.0", stage: "all" });

    await fleet.offers.pass();
    await fleet.offers.pass();

    const offer = { type: "coordinator:release", version: "1.1.0", digest };
    expect(fleet.sent).toEqual([
      [fleet.ids.athens, offer],
      [fleet.ids.oslo, offer],
    ]);
  });

  test("that could not be sent is sent at the next pass, and again in the next session", async () => {
    const fleet = await newFleet("athens");
    await publishedRelease(world.pool, { version: "1.1.0", stage: "all" });
    fleet.deaf.add(fleet.ids.athens);

    const passes = [await fleet.offers.pass()];
    fleet.deaf.clear();
    passes.push(await fleet.offers.pass(), await fleet.offers.pass());
    await fleet.comes(fleet.ids.athens, { release: runs("1.0.0") });
    passes.push(await fleet.offers.pass());

    expect(passes).toEqual([0, 1, 0, 1]);
  });

  test("reaches running coordinators when a stage changes", async () => {
    const { version } = await publishedRelease(world.pool, { version: "1.1.0", stage: "none" });
    let heard = 0;
    const notices = await stores().releases.onChange(() => {
      heard += 1;
    });

    await holdRelease(version, "not yet", stores(), releaseNow);

    await until(() => heard === 1, 10_000);
    await notices.stop();
  });
});

describe("a stage", () => {
  test("of one picks a connected crawler, and a share includes it", async () => {
    const fleet = await newFleet("athens", "oslo", "rome", "turin");
    for (const away of ["athens", "oslo", "rome"] as const) await leave(fleet.ids[away]);
    await publishedRelease(world.pool, { version: "1.1.0", stage: "none" });

    const one = await stageRelease({ version: "1.1.0", to: "one" }, stores(), releaseNow);
    const share = await stageRelease({ version: "1.1.0", to: "50%" }, stores(), releaseNow);

    expect(one.members).toEqual(["turin"]);
    expect(share.members).toHaveLength(3);
    expect(share.members).toContain("turin");
  });

  test.each([
    ["1.1.0", "half", "must be one, one=NAME, a percentage"],
    ["1.1.0", "101", "must be one, one=NAME, a percentage"],
    ["1.1.0", "one=nobody", "these do: athens"],
    ["9.9.9", "all", 'no release "9.9.9" is published'],
  ])("%s to %s is refused with a reason", async (version, to, words) => {
    await newFleet("athens");
    await publishedRelease(world.pool, { version: "1.1.0", stage: "none" });

    await expect(stageRelease({ version, to }, stores(), releaseNow)).rejects.toThrow(words);
  });

  test("is refused for a release that expired, was revoked, or is signed only by a retired key", async () => {
    await newFleet("athens");
    const { releases, keys } = stores();
    const first = await publishedRelease(world.pool, { version: "1.1.0", stage: "all" });
    const expired = () => stageRelease({ version: "1.1.0", to: "all" }, stores(), new Date(first.expiresAt));
    const attempt = () => stageRelease({ version: "1.1.0", to: "all" }, stores(), releaseNow);

    await expect(expired()).rejects.toThrow("it expired at");
    const next = newReleaseKey();
    const rotation = { sequence: 1, newKey: next.publicKey, retires: testReleaseKey.publicKey };
    expect(await keys.rotate(signedRotation(rotation), releaseNow)).toBeNull();
    await expect(attempt()).rejects.toThrow("the key that signed it was retired");
    expect(await keys.trusted()).toEqual([next.publicKey]);
    expect(await releases.revoke(signedRevocations(1, [first.digest], next), releaseNow)).toBeNull();
    await expect(attempt()).rejects.toThrow("it was revoked");
  });
});

describe("a release with automatic stages", () => {
  test("goes from one crawler to two to all while they report that they run it", async () => {
    const fleet = await newFleet("athens", "oslo", "rome", "turin");
    await publishedRelease(world.pool, { version: "1.1.0", stage: "none" });
    await stageRelease({ version: "1.1.0", to: "one=rome", soakMinutes: 30 }, stores(), minutes(0));

    const runsWell = async (at: Date) => {
      for (const [crawlerId] of fleet.sent.splice(0)) await fleet.reports(crawlerId, "running", at);
    };
    const stages = [];
    for (const at of [0, 29, 31, 60, 62, 95].map(minutes)) {
      await advanceReleases(stores(), at);
      await fleet.offers.pass();
      stages.push((await listed("1.1.0")).stage);
      await runsWell(at);
    }

    expect(stages).toEqual(["one", "one", "percent", "percent", "all", "all"]);
    expect(await listed("1.1.0")).toMatchObject({ soakMinutes: null, firstCrawlerId: fleet.ids.rome });
    expect((await fleet.counts("1.1.0"))?.running).toBe(4);
  });

  test("is offered again to a crawler that rolled back when an operator asks for it", async () => {
    const fleet = await newFleet("athens");
    await publishedRelease(world.pool, { version: "1.1.0", stage: "one" });
    await stageRelease({ version: "1.1.0", to: "one=athens" }, stores(), minutes(0));
    await fleet.offers.pass();
    await fleet.reports(fleet.ids.athens, "returned", minutes(5));

    await stageRelease({ version: "1.1.0", to: "all" }, stores(), minutes(6));
    const without = await fleet.offers.pass();
    await stageRelease({ version: "1.1.0", to: "all", again: true }, stores(), minutes(7));
    const offered = await fleet.offers.pass();

    expect([without, offered]).toEqual([0, 1]);
  });

  test("stays in its stage when a newer one is offered instead", async () => {
    const fleet = await newFleet("athens", "oslo");
    await publishedRelease(world.pool, { version: "1.1.0", stage: "none" });
    await stageRelease({ version: "1.1.0", to: "one=athens", soakMinutes: 30 }, stores(), minutes(0));
    await fleet.offers.pass();
    await fleet.reports(fleet.ids.athens, "running", minutes(1));
    await publishedRelease(world.pool, { version: "1.2.0", stage: "all" });

    await advanceReleases(stores(), minutes(40));

    expect(await listed("1.1.0")).toMatchObject({
      stage: "one",
      soakMinutes: null,
      stageWords: "1.2.0 is offered in its place",
    });
  });

  test("moves once, however many coordinators check at the same moment", async () => {
    const fleet = await newFleet("athens", "oslo", "rome");
    await publishedRelease(world.pool, { version: "1.1.0", stage: "none" });
    await stageRelease({ version: "1.1.0", to: "one=rome", soakMinutes: 30 }, stores(), minutes(0));
    await fleet.offers.pass();
    await fleet.reports(fleet.ids.rome, "running", minutes(1));

    const looks = await Promise.all(Array.from({ length: 8 }, () => advanceReleases(stores(), minutes(40))));

    expect(looks.flat()).toHaveLength(1);
    expect((await listed("1.1.0")).stage).toBe("percent");
  });

  test("is not moved by a check from before an operator staged it again", async () => {
    await newFleet("athens", "oslo");
    await publishedRelease(world.pool, { version: "1.1.0", stage: "none" });
    await stageRelease({ version: "1.1.0", to: "one=athens" }, stores(), minutes(0));
    const { stage, stageSince } = await listed("1.1.0");
    await stageRelease({ version: "1.1.0", to: "one=oslo" }, stores(), minutes(1));

    const all = { stage: "all", percent: null, words: "", soakMinutes: null } as const;
    const moved = await stores().releases.setStage(
      "1.1.0",
      { ...all, from: { stage, stageSince } },
      minutes(2),
    );

    expect([moved, (await listed("1.1.0")).stage]).toEqual([false, "one"]);
  });

  test("counts a crawler's time from its first report of running it", async () => {
    const fleet = await newFleet("athens", "oslo");
    await publishedRelease(world.pool, { version: "1.1.0", stage: "none" });
    await stageRelease({ version: "1.1.0", to: "one=athens", soakMinutes: 30 }, stores(), minutes(0));
    await fleet.offers.pass();
    for (const at of [1, 20, 31].map(minutes)) await fleet.reports(fleet.ids.athens, "running", at);

    const [move] = await advanceReleases(stores(), minutes(32));

    expect(move).toMatchObject({ type: "advance", stage: "percent" });
  });
});

describe("publishing", () => {
  test("refuses a repeated or smaller number, and another bundle under a version", async () => {
    const { sequence } = await publishedRelease(world.pool, { version: "1.1.0", stage: "none" });
    const again = (manifest: object, bundle?: string) =>
      publishedRelease(world.pool, {
        ...{ version: "1.1.0", stage: "none", manifest },
        ...(bundle ? { bundle } : {}),
      });

    expect(await listed("1.1.0")).toMatchObject({ sequence });
    await expect(again({ sequence })).rejects.toThrow("is published: sign it again");
    await expect(again({ sequence: sequence - 1 })).rejects.toThrow("is published: sign it again");
    await expect(again({}, "another")).rejects.toThrow("with another bundle");
    await expect(again({ expiresAt: "2031-01-01T00:00:00.000Z" })).resolves.toBeDefined();
  });

  test("of lists accepts only growing ones signed by a valid key", async () => {
    const { releases } = stores();
    const { digest } = await publishedRelease(world.pool, { version: "1.1.0", stage: "all" });
    const other = "c".repeat(64);

    const answers = [
      await releases.revoke(signedRevocations(5, [digest], newReleaseKey()), releaseNow),
      await releases.revoke(signedRevocations(5, [digest]), releaseNow),
      await releases.revoke(signedRevocations(5, [digest]), releaseNow),
      await releases.revoke(signedRevocations(6, [other]), releaseNow),
      await releases.revoke(signedRevocations(6, [digest, other]), releaseNow),
    ];

    expect(answers).toEqual([
      expect.stringContaining("not signed by a trusted key"),
      null,
      expect.stringContaining("has number 5"),
      expect.stringContaining(`lacks ${digest}`),
      null,
    ]);
    expect(await listed("1.1.0")).toMatchObject({ stage: "none", revoked: true });
  });

  test("a report of an unknown release changes nothing", async () => {
    const fleet = await newFleet("athens");

    expect(await fleet.reports(fleet.ids.athens, "running", releaseNow)).toBe(false);
    expect(await fleet.counts("1.1.0")).toBeUndefined();
  });
});

function stores() {
  const { pool } = world;
  return {
    releases: createReleaseStore(pool),
    releaseFleet: createReleaseFleetStore(pool),
    keys: createReleaseKeyStore(pool),
  };
}

async function listed(version: string) {
  const entry = (await stores().releases.list()).find((one) => one.version === version);
  if (!entry) throw new Error(`${version} is not there`);
  return entry;
}

/** Connected crawlers with supervisors that run 1.0.0; messages to them are recorded. */
async function newFleet<Name extends string>(...names: Name[]) {
  const ids = {} as Record<Name, CrawlerId>;
  const sent: [CrawlerId, CoordinatorMessage][] = [];
  const connected: CrawlerId[] = [];
  const deaf = new Set<CrawlerId>();
  const { releases, releaseFleet } = stores();
  const offers = new ReleaseOffers({
    releases,
    releaseFleet,
    online: () => connected,
    send: (crawlerId, message) => {
      if (deaf.has(crawlerId)) return false;
      sent.push([crawlerId, message]);
      return true;
    },
    now: () => releaseNow,
  });
  const comes = async (crawlerId: CrawlerId, said: Partial<CrawlerHello>) =>
    await offers.arrived(crawlerId, hello("someone", said));
  for (const name of names) {
    ids[name] = await world.arrived(name);
    connected.push(ids[name]);
    await comes(ids[name], { release: runs("1.0.0") });
  }
  const reports = async (crawlerId: CrawlerId, state: ReleaseState, at: Date, reason = "") =>
    await releaseFleet.reported(crawlerId, { version: "1.1.0", state, reason }, at);
  const counts = async (version: string) => (await releaseFleet.counts()).get(version);
  return { ids, sent, connected, deaf, offers, comes, reports, counts };
}

function runs(version: string): NonNullable<CrawlerHello["release"]> {
  return { version, digest: "0".repeat(64), dockVersion: "1.0.0", policy: "newest" };
}

async function leave(crawlerId: CrawlerId): Promise<void> {
  await world.crawlers.leave({ crawlerId, reason: "away", now: releaseNow });
}

function signedRotation(rotation: { sequence: number; newKey: string; retires: string }) {
  const { createdAt } = manifestOf("1.0.0", Buffer.from("x"));
  return signBody("key", { product: "nearcrawl-crawler", createdAt, ...rotation }, testReleaseKey.privateKey);
}

const jobsDatabase = await forThisFile(testDatabase());
/** A running coordinator with releases: real sockets, a real database, supervisors that report. */
describe("the release jobs", () => {
  let coordinator: RunningCoordinator;
  beforeAll(async () => {
    const config = readCoordinatorConfig({ listen: { port: 0 } });
    coordinator = await startCoordinator({ config, database: jobsDatabase, log: silentLog, version: "test" });
  });
  afterAll(async () => await coordinator?.stop());

  test("a release is offered after the welcome, fetched, reported, and held when its crawlers roll back", async () => {
    const { pool } = jobsDatabase;
    const stores = { releases: createReleaseStore(pool), releaseFleet: createReleaseFleetStore(pool) };
    const staged = async () => (await stores.releases.list()).find(({ version }) => version === "1.1.0");
    const athens = await supervised("athens");
    const oslo = await supervised("oslo");
    await until(async () => (await stores.releaseFleet.crawlers()).length === 2, 10_000);
    const { digest } = await publishedRelease(pool, { version: "1.1.0", stage: "none" });

    await stageRelease({ version: "1.1.0", to: "one=athens", soakMinutes: 30 }, stores, new Date());
    const offer = await athens.next("coordinator:release");
    const bundle = await fetch(new URL(`/releases/${digest}`, coordinator.webUrl));
    await report(athens, "running", "");
    await until(async () => (await stores.releaseFleet.counts()).get("1.1.0")?.running === 1, 10_000);
    await report(athens, "returned", "it crashed");
    await oslo.next("coordinator:release");
    await report(oslo, "returned", "it hung");
    await until(async () => (await staged())?.stage === "none", 10_000);
    const gone = await fetch(new URL(`/releases/${digest}`, coordinator.webUrl));
    const metrics = await (await fetch(new URL("/metrics", coordinator.webUrl))).text();

    expect(offer).toEqual({ type: "coordinator:release", version: "1.1.0", digest });
    expect([bundle.status, gone.status]).toEqual([200, 404]);
    expect((await staged())?.stageWords).toBe("athens rolled back from it: it crashed, and 1 more of 2");
    expect(metrics).toContain('nearcrawl_release_crawlers{version="1.1.0",state="returned"} 2');
    expect((await fleetList(pool, new Date())).map(({ name, release }) => [name, release?.version])).toEqual([
      ["athens", "1.0.0"],
      ["oslo", "1.0.0"],
    ]);
    for (const crawler of [athens, oslo]) crawler.disconnect();
  });

  async function supervised(name: string): Promise<RawCrawler> {
    await createCrawlerStore(jobsDatabase.pool).register({ name, keyHash: hashCrawlerKey(keyOf(name)) });
    const release = { version: "1.0.0", digest: "0".repeat(64), dockVersion: "1.0.0", policy: "follow" };
    const url = `${coordinator.webUrl.replace("http", "ws")}/crawler`;
    return await RawCrawler.arrive(url, name, { release });
  }

  async function report(crawler: RawCrawler, state: "running" | "returned", reason: string): Promise<void> {
    await crawler.send({ type: "crawler:release-report", version: "1.1.0", state, reason });
  }
});
