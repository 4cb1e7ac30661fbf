/**
 * Crawlers with and without IPv6, and hosts that have no other address: north does not speak it, south does, and
 * 2a00:1:1::7 is nearer to north.
 */
import { beforeEach, expect, it } from "vitest";
import { readCoordinatorConfig } from "#coordinator/config";
import { createSubmissionStore } from "#coordinator/crawl/submissions/submission-store";
import { replaceCrawler } from "#coordinator/place/balance/hand-overs";
import { PutOffMoves } from "#coordinator/place/balance/input";
import { welcomeCrawler } from "#coordinator/place/balance/presence";
import { rebalanceLoad } from "#coordinator/place/balance/relief";
import { AnycastRanges } from "#coordinator/place/delegation/anycast";
import { DeniedTargets, strandedSubnets } from "#coordinator/place/delegation/denied-targets";
import { explainReason } from "#coordinator/place/delegation/policies/reason";
import { startProbing } from "#coordinator/place/delegation/start";
import type { CoordinatorState } from "#coordinator/place/delegation/state";
import { longestWaiting } from "#coordinator/tell/overview/queue-reads";
import { waitWords } from "#coordinator/tell/overview/queue-words";
import type { CrawlerId, SubnetId } from "#core/ids";
import { flowWorld, hello, TableFleet } from "../support/flow-world.ts";
import { eachMs, keyOf, noon, roundOf, scope, seeds } from "../support/store-world.ts";
import { balanceSettings } from "../support/two-crawlers.ts";
import { nearestRound, queueOver, runRound } from "./round-world.ts";

const world = flowWorld();
let north: CrawlerId;
let south: CrawlerId;

beforeEach(async () => {
  north = await arrived("north", false);
  south = await arrived("south", true);
});

const speaking = (name: string, ipv6: boolean, pagesPerDay = 1000) =>
  hello(name, {
    capabilities: { probeMethods: ["head", "connect"], ipv6 },
    limits: { pagesPerDay, bytesPerDay: 1e12, concurrentHosts: 10 },
  });

async function arrived(name: string, ipv6: boolean, pagesPerDay?: number): Promise<CrawlerId> {
  const known = await world.rows<{ crawler_id: CrawlerId }>(
    `select crawler_id from crawler where name = '${name}'`,
  );
  const crawlerId = known[0]?.crawler_id ?? (await world.crawler(name));
  const spoken = speaking(name, ipv6, pagesPerDay);
  await world.crawlers.arrive({ crawlerId, hello: spoken, address: null, subnetId: null, now: noon });
  return crawlerId;
}

/** The /48 number `number`, with http://v<number>.example/ at 2a00:1:<number>::7 alone, due. */
async function ipv6Site(number: number, ...paths: string[]): Promise<SubnetId> {
  const subnetId = await world.subnet(`2a00:1:${number}::`, `2a00:1:${number}:ffff:ffff:ffff:ffff:ffff`);
  await world.frontier.admit(
    seeds(...["", ...paths].map((path) => `http://v${number}.example/${path}`)),
    scope,
    noon,
  );
  await world.resolve(`v${number}.example`, `2a00:1:${number}::7`, subnetId);
  return subnetId;
}

const deniedOf = (state: CoordinatorState) => new DeniedTargets(null, state);
const answering = (...online: CrawlerId[]) =>
  new TableFleet(online, {
    "2a00:1:1::7": new Map(eachMs([north, 1], [south, 50])),
  });
const exhaustive = { ...nearestRound, policy: "exhaustive" } as const;

it("a crawler without IPv6 is no candidate for an IPv6 subnet, however near", async () => {
  const subnetId = await ipv6Site(1);
  const state = await world.state();
  const fleet = answering(north, south);

  const round = await runRound(world, subnetId, {
    state,
    fleet,
    denied: deniedOf(state),
    settings: exhaustive,
  });

  expect(round).toMatchObject({ crawlerId: south, runnerUpId: null });
  expect(fleet.asked.map(({ crawlerId }) => crawlerId)).not.toContain(north);
});

it("while nobody online speaks IPv6 its subnets wait, one round says why, and a crawler that comes with it gets them at once", async () => {
  const subnetId = await ipv6Site(1);
  const state = await world.state();
  const fleet = answering(north);
  const ports = { state, fleet, denied: deniedOf(state) };
  const { queue, decided } = queueOver(world, ports, { round: exhaustive });
  const filled = async () => {
    await queue.fill();
    await queue.idle();
  };

  await filled();
  await filled();
  queue.request([subnetId], "crawler-left");
  await filled();

  expect(decided.map(({ reason }) => explainReason(reason, String))).toEqual([
    expect.stringContaining("no crawler that was online speaks it"),
  ]);
  expect(state.ownerOf(subnetId)).toBeNull();

  fleet.goOnline(north, south);
  await filled();

  expect(state.ownerOf(subnetId)).toBe(south);
});

it("a crawler without IPv6 is leased no host that has only IPv6 addresses, even of a subnet that is its own", async () => {
  const owned = [await ipv6Site(1), await world.site(1)];
  await world.frontier.admit(seeds("http://both.example/"), scope, noon);
  await world.frontier.saveResolutions(
    [
      {
        type: "resolved",
        host: "both.example",
        addresses: ["5.1.1.8", "2a00:1:1::8"],
        subnetId: owned[1]!,
        ttlSeconds: 3600,
      },
    ],
    noon,
  );
  for (const subnetId of owned) await world.delegations.delegateOwnSubnet(subnetId, north, noon);

  const without = await world.lease(north);
  await arrived("north", true);
  const withIpv6 = await world.lease(north);

  expect(without.map(({ host }) => host).toSorted()).toEqual(["both.example", "s1.example"]);
  expect(withIpv6.map(({ host }) => host)).toEqual(["v1.example"]);
});

it("IPv6 subnets of a crawler that comes back without IPv6 go to others, also when one comes later", async () => {
  const [subnetId, plain] = [await ipv6Site(1), await world.site(1)];
  for (const id of [subnetId, plain]) await world.delegations.delegateOwnSubnet(id, north, noon);
  const state = await world.state();
  const fleet = new TableFleet([north]);
  const requested: unknown[] = [];
  const request = (ids: readonly SubnetId[], cause: string) =>
    requested.push(...ids.map((id) => [id, cause]));
  const denied = deniedOf(state);
  const probing = startProbing(
    {
      fleet,
      state,
      ...{ denied, anycast: new AnycastRanges() },
      delegations: world.delegations,
      now: () => noon,
      request,
    },
    readCoordinatorConfig({}),
  );
  const stranded = () => strandedSubnets({ state, gateway: fleet, denied }, { most: 5, turn: 3 });

  probing.onHello(north, speaking("north", false));
  const alone = stranded();
  fleet.goOnline(north, south);

  expect(requested).toEqual([[subnetId, "denied"]]);
  expect([alone, stranded()]).toEqual([[], [subnetId]]);
});

it("a crawler that comes back with IPv6 joins again, for the subnets that are nearest to it", async () => {
  for (const crawlerId of [north, south]) await world.crawlers.hasJoined(crawlerId);
  const state = await world.state();
  const joining = async (name: string, crawlerId: CrawlerId) => {
    const arrival = { crawlerId, hello: speaking(name, true), remoteAddress: "10.1.1.1" };
    await welcomeCrawler(arrival, { ...world, state }, noon);
    return state.crawler(crawlerId)?.joiningSince;
  };

  expect([await joining("north", north), await joining("south", south)]).toEqual([noon, null]);
});

it("neither load nor a crawler's end moves an IPv6 subnet to a crawler that does not speak it", async () => {
  const [full, gone] = [await arrived("full", true, 1), await arrived("gone", true)];
  const [heavy, left, silent] = [await ipv6Site(1, "a", "b"), await ipv6Site(2), await ipv6Site(4)];
  const empty = await world.subnet("2a00:1:3::", "2a00:1:3::ff");
  const rtts = (owner: CrawlerId) => eachMs([owner, 10], [north, 11]);
  await world.delegations.saveRound(roundOf(heavy, rtts(full)));
  for (const subnetId of [left, silent]) await world.delegations.saveRound(roundOf(subnetId, rtts(gone)));
  // Measured once, and with nothing left to probe.
  await world.pool.query("delete from frontier_url where url like '%v4.%'");
  await world.delegations.delegateOwnSubnet(empty, gone, noon);
  const state = await world.state();
  const ports = { ...world, state, denied: deniedOf(state), fleet: new TableFleet([north, full]) };

  const moved = await rebalanceLoad({ ...ports, putOff: new PutOffMoves() }, balanceSettings, noon);
  const replaced = await replaceCrawler(
    gone,
    { ...ports, recrawlDays: () => 7, online: () => [north] },
    noon,
  );

  expect(moved).toEqual([]);
  expect(replaced).toMatchObject({ moved: [], orphans: [left] });
  expect([empty, silent].map((subnetId) => state.ownerOf(subnetId))).toEqual([gone, gone]);
});

it("a crawler at an IPv6 address is given its own subnet only if it speaks IPv6 to sites", async () => {
  const subnetId = await world.subnet("2a00:1:9::", "2a00:1:9::ff");
  const state = await world.state();
  const remoteAddress = "2a00:1:9::1";
  const arriving = async (crawlerId: CrawlerId, name: string, ipv6: boolean) =>
    await welcomeCrawler(
      { crawlerId, hello: speaking(name, ipv6), remoteAddress },
      { ...world, state },
      noon,
    );

  await arriving(north, "north", false);
  const without = state.ownerOf(subnetId);
  await arriving(south, "south", true);

  expect([without, state.ownerOf(subnetId)]).toEqual([null, south]);
});

it("queue and receipts say that nobody online speaks IPv6 while that is so, whoever has the subnet", async () => {
  const subnetId = await ipv6Site(1);
  await world.delegations.delegateOwnSubnet(subnetId, north, noon);
  const shown = async () => {
    const [host] = await longestWaiting(world.pool, { reason: null, most: 1 }, noon);
    const [url] = await createSubmissionStore(world.pool).statusOf(
      [{ place: 1, url: "http://v1.example/", key: keyOf("http://v1.example/"), fault: null }],
      noon,
    );
    return [host!.reason, waitWords(host!, noon), url!.words];
  };

  const online = await shown();
  await world.crawlers.leave({ crawlerId: south, reason: "it was stopped", now: noon });
  const offline = await shown();

  expect(online).toEqual([
    "no-delegation",
    "no crawler was found for its subnet yet",
    "the nearest crawler to its subnet is being determined",
  ]);
  expect(offline).toEqual([
    "no-ipv6",
    "it has only IPv6 addresses, and no crawler that is online speaks IPv6",
    "its host has only IPv6 addresses, and no crawler that is online speaks IPv6",
  ]);
});
