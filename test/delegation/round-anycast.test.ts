/**
 * Rounds of anycast ranges. Five crawlers: athens and rome, seoul and tokyo, boston. 5.1.1.7 answers beside each group;
 * 5.1.2.7 is one machine in Athens, 5.1.3.7 one in Athens that is registered in America.
 */
import { beforeEach, describe, expect, it } from "vitest";
import { AnycastRanges, watchedFleet } from "#coordinator/place/delegation/anycast";
import { AnycastCandidates } from "#coordinator/place/delegation/anycast-check";
import { explainReason } from "#coordinator/place/delegation/policies/reason";
import type { CoordinatorState } from "#coordinator/place/delegation/state";
import { type PublishedKind, PublishedRangesBuilder } from "#coordinator/place/subnets/published-ranges";
import type { CrawlerId, SubnetId } from "#core/ids";
import { parseRange } from "#core/ip/range";
import { type Answer, flowWorld, TableFleet } from "../support/flow-world.ts";
import { eachMs, noon, roundOf, scope, secondsAfterNoon, seeds } from "../support/store-world.ts";
import { crawlerIn, holds, learnDistances, registeredIn, runRound } from "./round-world.ts";

const world = flowWorld();
let crawlers: CrawlerId[];
let athens: CrawlerId;
let tokyo: CrawlerId;
let state: CoordinatorState;
let fleet: TableFleet;
let anycast: AnycastRanges;
const sites: SubnetId[] = [];

beforeEach(async () => {
  crawlers = [];
  for (const [name, country] of places) crawlers.push(await crawlerIn(world, name, country));
  athens = crawlers[0]!;
  tokyo = crawlers[3]!;
  sites.length = 0;
  for (const number of [1, 2, 3, 4]) sites.push(await world.site(number));
  await registeredIn(world, "US", sites[0]!);
  await registeredIn(world, "GR", sites[1]!);
  await registeredIn(world, "US", sites[2]!);
  await registeredIn(world, "US", sites[3]!);
  await holds(world, "everywhere", sites[0]!, sites[3]!);
  await holds(world, "abroad", sites[2]!);
  await restart();
  fleet = new TableFleet(crawlers, {
    "5.1.1.7": answers(3, 9, 7, 4, 5),
    "5.1.2.7": answers(3, 27, 280, 270, 121),
    "5.1.3.7": answers(3, 27, 280, 270, 121),
    "5.1.4.7": answers(3, 9, 7, 4, 5),
  });
  anycast = new AnycastRanges();
});

const places = [
  ["athens", "GR"],
  ["rome", "IT"],
  ["seoul", "KR"],
  ["tokyo", "JP"],
  ["boston", "US"],
] as const;
const distances = [
  [0, 25, 280, 270, 120],
  [25, 0, 270, 260, 100],
  [280, 270, 0, 30, 180],
  [270, 260, 30, 0, 160],
  [120, 100, 180, 160, 0],
];

const answers = (...rttsMs: number[]): ReadonlyMap<CrawlerId, Answer> =>
  new Map(rttsMs.map((rttMs, index) => [crawlers[index]!, rttMs]));

/** What a starting coordinator knows. */
async function restart(): Promise<void> {
  state = await world.state();
  learnDistances(state, crawlers, distances);
}

const round = async (subnetId: SubnetId) => await runRound(world, subnetId, { state, fleet, anycast });

it("asks only the policy's crawlers where a fast answer comes from the country of the registration", async () => {
  const found = await round(sites[1]!);

  expect(found).toMatchObject({ crawlerId: athens, rttMs: 3 });
  expect(fleet.asked).toHaveLength(1);
});

it("finds an anycast range with two additional probes: one to check, one to confirm", async () => {
  const found = await round(sites[0]!);

  expect(found?.reason).toMatchObject({
    type: "anycast",
    by: "peer-rtt",
    confirmed: { rttMs: expect.any(Number) },
  });
  expect(found?.anycast).toBe(true);
  expect(fleet.asked).toHaveLength(3);
  expect(explainReason(found?.reason, (crawlerId) => places[crawlers.indexOf(crawlerId)]![0])).toMatch(
    /^The range is anycast: .* confirmed it\. .* the one with the most room took it\. Runner-up: /,
  );
});

it("gives it to the crawler with the most room among those that answered fast", async () => {
  // Athens and Boston have ten subnets each already, of the thousand pages a day that each may fetch.
  for (let number = 10; number < 30; number++) {
    const subnetId = await world.subnet(`5.1.${number}.0`, `5.1.${number}.255`);
    await world.delegations.delegateOwnSubnet(subnetId, number < 20 ? athens : crawlers[4]!, noon);
  }
  await restart();

  const found = await round(sites[0]!);

  expect([athens, crawlers[4]]).not.toContain(found?.crawlerId);
  expect(found?.runnerUpId).not.toBeNull();
});

it("is marked in the database, teaches nothing about its holder's place, and is known after a restart", async () => {
  await round(sites[0]!);

  expect(await world.rows("select anycast, measured, retry_at from delegation")).toEqual([
    { anycast: true, measured: true, retry_at: null },
  ]);
  expect(await world.delegations.unmeasuredBy(secondsAfterNoon(1e7))).toEqual([]);
  expect(state.knowledge.owners({ kind: "root", key: 0 })).toEqual([]);
  const known = state.delegationOf(sites[0]!);
  await restart();
  expect(state.delegationOf(sites[0]!)).toEqual(known);
  expect(state.knowledge.owners({ kind: "root", key: 0 })).toEqual([]);
  const restored = new AnycastRanges();
  restored.restore(await world.delegations.anycastSubnets(), (subnetId) => state.placementOf(subnetId));
  expect(restored.has(sites[0]!)).toBe(true);
  expect(restored.ofHolder(state.placementOf(sites[3]!)?.holderKey ?? null, 0)).toBe(true);
  // So another range of the holder is checked at once, wherever it is registered.
  await registeredIn(world, "GR", sites[3]!);
  await restart();
  expect((await round(sites[3]!))?.anycast).toBe(true);
});

it("checks a single machine that is registered abroad once, and its holder at most once a day", async () => {
  const first = await round(sites[2]!);
  const askedFirst = fleet.asked.length;
  const again = await round(sites[2]!);

  expect(first).toMatchObject({ crawlerId: athens, rttMs: 3 });
  expect(first?.anycast).toBeUndefined();
  expect(askedFirst).toBe(2);
  expect(again).toMatchObject({ crawlerId: athens });
  expect(fleet.asked.length - askedFirst).toBe(1);
});

it("does not believe one crawler alone, since something beside it may answer for everybody", async () => {
  // Tokyo sits behind a box that accepts every connection; the machine is in Athens.
  fleet = new TableFleet(crawlers, { "5.1.3.7": answers(3, 27, 280, 1, 121) });
  await registeredIn(world, "JP", sites[2]!);
  await restart();
  const excluded = () => new Set([crawlers[2]!, crawlers[4]!]);

  const found = await runRound(world, sites[2]!, { state, fleet, anycast, excluded });

  expect(fleet.asked.map(({ crawlerId }) => crawlerId)).toContain(tokyo);
  expect(found?.reason).not.toMatchObject({ type: "anycast" });
});

it("finds a range that answers in only two regions by neighbours of both", async () => {
  fleet = new TableFleet(crawlers, { "5.1.1.7": answers(3, 26, 33, 4, 110) });
  const excluded = () => new Set([crawlers[4]!]);
  await registeredIn(world, "JP", sites[0]!);
  await restart();

  const found = await runRound(world, sites[0]!, { state, fleet, anycast, excluded });

  expect(found?.anycast).toBe(true);
  expect(fleet.asked).toHaveLength(4);
});

it("removes the mark when a later round finds one machine", async () => {
  await round(sites[0]!);
  fleet = new TableFleet(crawlers, { "5.1.1.7": answers(3, 27, 280, 270, 121) });

  await runRound(world, sites[0]!, { state, fleet, anycast, cause: "operator" });

  expect(anycast.has(sites[0]!)).toBe(false);
  expect(await world.delegations.anycastSubnets()).toEqual([]);
  expect(state.delegationOf(sites[0]!)).toMatchObject({ crawlerId: athens, measured: true });
});

it("is suspected when any other probe contradicts, but not by answers that one machine can give", async () => {
  // Registered at home and never checked: Athens has both, as ordinary ranges.
  await registeredIn(world, "GR", sites[0]!);
  await restart();
  await round(sites[0]!);
  await round(sites[1]!);
  expect(anycast.has(sites[0]!)).toBe(false);
  const requested: SubnetId[] = [];
  const request = (subnetId: SubnetId) => requested.push(subnetId);
  const watched = watchedFleet(fleet, { state, ranges: anycast, nowMs: () => noon.getTime(), request });
  const probe = async (crawlerId: CrawlerId, site: number) => {
    const asked = { host: `s${site}.example`, address: `5.1.${site}.7`, port: 80, secure: false };
    await watched.probe(crawlerId, { ...asked, method: "connect", tries: 3, deadlineMs: 3000 });
  };

  for (const crawlerId of crawlers) await probe(crawlerId, 2);
  expect(requested).toEqual([]);
  for (let times = 0; times < 3; times++) await probe(tokyo, 1);
  const found = await runRound(world, sites[0]!, { state, fleet, anycast, cause: "review" });

  expect(requested).toEqual([sites[0]]);
  expect(found?.probes[1]?.crawlerId).toBe(tokyo);
  expect(found?.anycast).toBe(true);
});

/** Entries of clouds' and CDNs' lists; a range without a region is everywhere. */
type Listed = readonly (readonly [kind: PublishedKind, range: string, region: string | null])[];

describe("a range on a cloud's list", () => {
  let listed: Listed;

  const lists = async (...given: Listed) => {
    listed = given;
    await startAgain();
  };

  /** What a starting coordinator reads from the database. */
  const startAgain = async () => {
    await restart();
    const builder = new PublishedRangesBuilder();
    for (const [kind, range, region] of listed) {
      const list = { source: kind, kind, isNamedByObjects: false, listDate: null, version: null };
      builder.add(builder.addList(list), parseRange(range)!, { place: region, within: null });
    }
    state.setPublished(builder.build());
    anycast = new AnycastRanges();
    const placementOf = (subnetId: SubnetId) => state.placementOf(subnetId);
    anycast.restore(
      await world.delegations.anycastSubnets(),
      placementOf,
      await world.delegations.notAnycast(),
    );
  };

  const askedIn = async (of: () => Promise<unknown>) => {
    const before = fleet.asked.length;
    await of();
    return fleet.asked.length - before;
  };

  const candidates = () =>
    new AnycastCandidates({
      state,
      ranges: anycast,
      online: () => fleet.online(),
      nowMs: () => noon.getTime(),
    });

  beforeEach(async () => {
    // Registered where the fast answer comes from: nothing but the list suggests anything.
    for (const subnetId of sites) await registeredIn(world, "GR", subnetId);
  });

  it("is found to be anycast in its first round, although the policy stops at the first near answer", async () => {
    await lists(["cloudflare", "5.1.1.0/24", null]);

    const found = await round(sites[0]!);

    expect(found).toMatchObject({
      anycast: true,
      reason: { type: "anycast", listed: "cloudflare 5.1.1.0/24" },
    });
    expect(explainReason(found?.reason, () => "one")).toContain(
      "Its network publishes it as cloudflare 5.1.1.0/24.",
    );
  });

  it("is found over IPv6, too", async () => {
    const subnetId = await world.subnet("2400:cb00::", "2400:cb00:ffff:ffff:ffff:ffff:ffff:ffff");
    await world.frontier.admit(seeds("http://six.example/"), scope, noon);
    await world.resolve("six.example", "2400:cb00::7", subnetId);
    await registeredIn(world, "GR", subnetId);
    fleet = new TableFleet(crawlers, { "2400:cb00::7": answers(3, 9, 7, 4, 5) });
    await lists(["cloudflare", "2400:cb00::/32", null]);

    expect(await round(subnetId)).toMatchObject({ anycast: true });
  });

  it("costs two probes by far crawlers where it is one place, once per region, and says so", async () => {
    await lists(["aws", "5.1.2.0/23", "aws eu-south-1"]);
    const found = await round(sites[1]!);

    expect(found).toMatchObject({ crawlerId: athens, rttMs: 3 });
    expect(fleet.asked).toHaveLength(3);
    expect(explainReason(found?.reason, () => "one")).toContain(
      "as aws eu-south-1; so 2 crawlers far away were asked, once: it is not anycast.",
    );

    expect(await askedIn(async () => await round(sites[1]!))).toBe(1);
    expect(await askedIn(async () => await round(sites[2]!))).toBe(1);
    await startAgain();
    expect(await askedIn(async () => await round(sites[2]!))).toBe(1);
    expect(candidates().next()).toEqual([]);
  });

  it("is checked separately within a wider range that is one place", async () => {
    await lists(["aws", "5.1.0.0/16", "aws eu-south-1"], ["google", "5.1.1.0/24", null]);
    await round(sites[1]!);

    expect(await round(sites[0]!)).toMatchObject({ anycast: true });
    expect(await askedIn(async () => await round(sites[2]!))).toBe(1);
  });

  it("is clear although other ranges of its holder are anycast", async () => {
    await holds(world, "everywhere", sites[0]!, sites[1]!);
    await lists(["cloudflare", "5.1.1.0/24", null], ["aws", "5.1.2.0/24", "aws eu-south-1"]);
    await round(sites[0]!);
    await round(sites[1]!);

    expect(await askedIn(async () => await round(sites[1]!))).toBe(1);
  });

  it("needs a third crawler only where its network publishes a place for it", async () => {
    const two = new TableFleet([athens, tokyo], { "5.1.1.7": answers(3, 9, 7, 4, 5) });
    await lists(["aws", "5.1.1.0/24", "aws eu-south-1"]);
    fleet = two;

    const ofRegion = await round(sites[0]!);
    expect(ofRegion?.anycast).toBeUndefined();
    expect(await world.delegations.notAnycast()).toEqual([]);
    await lists(["cloudflare", "5.1.1.0/24", null]);

    expect(await round(sites[0]!)).toMatchObject({ anycast: true, reason: { confirmed: null } });
  });

  it("is checked again after a day where no far crawler got an answer", async () => {
    fleet = new TableFleet(crawlers, { "5.1.2.7": new Map([[athens, 3]]) });
    await lists(["aws", "5.1.2.0/24", "aws eu-south-1"]);
    const at = async (hours: number) =>
      await runRound(world, sites[1]!, {
        ...{ state, fleet, anycast, cause: "refresh", now: () => secondsAfterNoon(3600 * hours) },
      });

    await round(sites[1]!);
    expect(await askedIn(async () => await at(23))).toBe(1);
    expect(await askedIn(async () => await at(25))).toBe(3);
  });

  it("gets a round when others join the crawler that had it alone, at most one a day", async () => {
    const alone = new TableFleet([athens], {});
    await lists(["cloudflare", "5.1.1.0/24", null], ["aws", "5.1.2.0/23", "aws eu-south-1"]);
    for (const subnetId of sites.slice(0, 3))
      await runRound(world, subnetId, { state, fleet: alone, anycast });
    expect(state.delegationOf(sites[0]!)).toMatchObject({ crawlerId: athens, rttMs: null });
    const turns = candidates();

    const due = turns.next();
    const again = turns.next();
    for (const subnetId of [...due, ...again])
      await runRound(world, subnetId, { state, fleet, anycast, cause: "review" });

    // Of the region one subnet tells.
    expect([due.length, again.length]).toEqual([2, 1]);
    expect(anycast.has(sites[0]!)).toBe(true);
    expect(state.delegationOf(sites[1]!)).toMatchObject({ crawlerId: athens, rttMs: 3 });
    expect(turns.next()).toEqual([]);
  });

  it("gets none while no crawler is far enough away", async () => {
    await lists(["cloudflare", "5.1.1.0/24", null]);
    fleet = new TableFleet(crawlers.slice(0, 2), { "5.1.1.7": answers(3, 9, 7, 4, 5) });
    await round(sites[0]!);

    expect(candidates().next()).toEqual([]);
    fleet.goOnline(...crawlers);
    expect(candidates().next()).toEqual([sites[0]]);
  });
});

it("gets a round where its crawler and the runner-up both measured it near, although they are far apart", async () => {
  await registeredIn(world, "GR", sites[0]!);
  await world.delegations.saveRound(roundOf(sites[0]!, eachMs([athens, 3], [tokyo, 4])));
  await world.delegations.saveRound(roundOf(sites[1]!, eachMs([athens, 3], [tokyo, 270])));
  await restart();
  const turns = new AnycastCandidates({
    ...{ state, ranges: anycast, online: () => crawlers, nowMs: () => noon.getTime() },
  });

  expect(turns.next()).toEqual([sites[0]]);
  expect(await runRound(world, sites[0]!, { state, fleet, anycast, cause: "review" })).toMatchObject({
    anycast: true,
  });
  expect(turns.next()).toEqual([]);
});
