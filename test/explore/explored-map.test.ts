/**
 * Tiles, lists and levels of the tree on a world that can be followed in the head:
 *
 *   10.0.0.0/8          athens, 20 ms, from second 1000
 *   ├ 10.0.0.0/16       berlin, 40 ms, from 2000; 30 pages a day
 *   │ └ 10.0.1.0/24     goes with berlin; 10 pages a day, one due host: waits for its own
 *   └ 10.1.0.0 - 10.2.127.255   goes with athens
 *   20.0.0.0/8          nobody
 *   2a00::/12           athens
 *   └ 2a00:1::/32       goes with athens
 */
import { beforeAll, expect, it } from "vitest";
import type { CrawlerRecord } from "#coordinator/crawlers/crawler";
import { CoordinatorState } from "#coordinator/delegation/state";
import {
  type ExploreAnswer,
  type OccupiedAnswer,
  readQuestion,
  showExplore,
  type WholeAnswer,
} from "#coordinator/explore/answer";
import { type ExploredMap, Explorer } from "#coordinator/explore/explorer";
import type { ExploreReads } from "#coordinator/explore/reads";
import { childTile, ipv4Space, rootTile, type Tile, tileHolding } from "#coordinator/explore/space";
import { buildSubnetTree } from "#coordinator/subnets/subnet-tree";
import { asCrawlerId, asHolderId, asSubnetId, type SubnetId } from "#core/ids";
import { parseRange } from "#core/ip/range";

const ranges = [
  "10.0.0.0/8",
  "10.0.0.0/16",
  "10.0.1.0/24",
  "10.1.0.0 - 10.2.127.255",
  "20.0.0.0/8",
  "2a00::/12",
  "2a00:1::/32",
];
const [athens, berlin] = [asCrawlerId(7), asCrawlerId(9)];
const decided = [
  { subnetId: asSubnetId(1), crawlerId: athens, rttMs: 20, since: 1000 },
  { subnetId: asSubnetId(2), crawlerId: berlin, rttMs: 40, since: 2000 },
  { subnetId: asSubnetId(6), crawlerId: athens, rttMs: 80, since: 3000 },
];

let state: CoordinatorState;
let explorer: Explorer;
let turns: number;

const reads: ExploreReads = {
  eachMark: async (visit) => {
    for (const { subnetId, since } of decided) visit({ subnetId, since, anycast: subnetId === 6 });
  },
  eachLoad: async (_recrawlDays, visit) => {
    visit({ subnetId: asSubnetId(2), pagesPerDay: 30, dueHosts: 0 });
    visit({ subnetId: asSubnetId(3), pagesPerDay: 10, dueHosts: 1 });
  },
  finerSubnets: async () => [asSubnetId(3)],
  holders: async (ids) => ids.map((holderId) => ({ holderId, name: `Holder ${holderId}`, handle: null })),
  holdersCalled: async (text) =>
    text === "H-2" ? [{ holderId: asHolderId(2), name: "Holder 2", handle: text }] : [],
};
const clock = {
  now: () => new Date(100_000_000),
  steadyMs: () => turns++,
  yieldTurn: async () => {},
};

async function readAnew(): Promise<void> {
  turns = 0;
  state = new CoordinatorState();
  const subnets = ranges.map((range, index) => ({
    id: asSubnetId(index + 1),
    range: parseRange(range)!,
    parentId: null,
    holderId: asHolderId(index),
    country: index === 4 ? "DE" : "CY",
    registry: index === 4 ? ("arin" as const) : ("ripencc" as const),
    name: `NET-${index + 1}`,
  }));
  state.setTree(buildSubnetTree(subnets), 1);
  state.setCrawlers([
    { crawlerId: athens, name: "athens" } as CrawlerRecord,
    { crawlerId: berlin, name: "berlin" } as CrawlerRecord,
  ]);
  for (const { subnetId, crawlerId, rttMs } of decided) delegate(subnetId, crawlerId, rttMs);
  // No tile but the first is kept: both ways to make one are gone.
  explorer = new Explorer(
    { state, reads, clock, onFault: (error) => expect.fail(String(error)) },
    { subnetsPerTile: 3, mostTiles: 3, readLoadsEveryMs: 1e9, recrawlDays: 30 },
  );
  await explorer.settled();
}

// Those that change the world come last.
beforeAll(readAnew);

function delegate(subnetId: SubnetId, crawlerId: typeof athens, rttMs: number): void {
  state.setDelegation({
    ...{ subnetId, crawlerId, rttMs },
    measured: true,
    runnerUpId: null,
    runnerUpRttMs: null,
  });
}

/** What is known of the cell of an address, in a tile that is asked for by its block. */
async function cellAt(tile: Tile, address: string) {
  const map = explorer.map as ExploredMap;
  const cells = await explorer.cells(map, tile, null);
  const size = 2 ** (32 - 2 * tile.zoom - 16);
  const { first } = parseRange(address) as { first: number };
  const cell = first / size - tile.index * 65536;
  return {
    crawler: map.world.crawlerIdOf(cells.crawlers[cell]!),
    registered: cells.registered[cell],
    delegated: cells.delegated[cell],
    rttMs: cells.rtts[cell]! / 10,
    since: cells.since[cell],
    pagesPerDay: cells.loads[cell],
  };
}

async function ask<View extends ExploreAnswer["view"]>(
  view: View,
  query: Readonly<Record<string, string>> = {},
) {
  const question = readQuestion((name) => ({ view, ...query })[name] ?? "");
  if (typeof question === "string") throw new Error(question);
  const answer = await showExplore({ explorer, state, reads, clock }, explorer.map as ExploredMap, question);
  return answer as Extract<ExploreAnswer, { view: View }>;
}

it("gives a cell to whoever crawls most of it, with means over its addresses", async () => {
  // A cell of the first tile is a /16.
  const root = rootTile(ipv4Space);

  expect(await cellAt(root, "10.0.0.0")).toEqual({
    ...{ crawler: berlin, registered: 255, delegated: 255, rttMs: 40, since: 2000, pagesPerDay: 40 },
  });
  expect(await cellAt(root, "10.2.0.0")).toMatchObject({ crawler: athens, rttMs: 20, since: 1000 });
  expect(await cellAt(root, "20.7.0.0")).toMatchObject({ crawler: null, registered: 255, delegated: 0 });
  expect(await cellAt(root, "30.0.0.0")).toMatchObject({ registered: 0, delegated: 0 });
});

it("makes a deeper tile from its subnets as it puts the same together from below", async () => {
  const four = tileHolding(parseRange("10.0.0.0/8")!) as Tile;

  // A cell is a /24; a load is spread over all addresses of its own subnet.
  expect(await cellAt(four, "10.0.1.0")).toMatchObject({ crawler: berlin });
  expect((await cellAt(four, "10.0.1.0")).pagesPerDay).toBeCloseTo(10 + 30 / 256);
  expect((await cellAt(four, "10.0.9.0")).pagesPerDay).toBeCloseTo(30 / 256);
});

it.each([
  [{}, ["10.0.0.0/8", "10.0.0.0/16", "10.0.1.0/24", "10.1.0.0 - 10.2.127.255", "20.0.0.0/8"]],
  [{ at: "ipv6" }, ["2a00::/12", "2a00:1::/32"]],
  [{ crawler: "athens" }, ["10.0.0.0/8", "10.1.0.0 - 10.2.127.255"]],
  [{ crawler: "nobody of this name" }, []],
  [{ crawler: "berlin", state: "delegated" }, ["10.0.0.0/16"]],
  [{ state: "inherited" }, ["10.0.1.0/24", "10.1.0.0 - 10.2.127.255"]],
  [{ state: "none" }, ["20.0.0.0/8"]],
  [{ state: "waiting" }, ["10.0.1.0/24"]],
  [{ state: "finer" }, ["10.0.1.0/24"]],
  [{ state: "anycast", at: "ipv6" }, ["2a00::/12"]],
  [{ country: "de" }, ["20.0.0.0/8"]],
  [{ registry: "arin" }, ["20.0.0.0/8"]],
  [{ holder: "H-2" }, ["10.0.1.0/24"]],
  [{ minRttMs: "21" }, ["10.0.0.0/16", "10.0.1.0/24"]],
  [{ maxRttMs: "20" }, ["10.0.0.0/8", "10.1.0.0 - 10.2.127.255"]],
  [{ minLoad: "11" }, ["10.0.0.0/16"]],
  // 100,000 s less 1.14 days is second 1504.
  [{ olderThanDays: "1.14" }, ["10.0.0.0/8", "10.1.0.0 - 10.2.127.255"]],
  [{ minPrefix: "16" }, ["10.0.0.0/16", "10.0.1.0/24", "10.1.0.0 - 10.2.127.255"]],
  [{ maxPrefix: "8" }, ["10.0.0.0/8", "20.0.0.0/8"]],
  [{ at: "10.0.0.0/16" }, ["10.0.0.0/8", "10.0.0.0/16", "10.0.1.0/24"]],
])("lists what %j leaves", async (query, expected) => {
  const answer = await ask("list", query);

  expect(answer.subnets.map(({ range }) => range)).toEqual(expected);
  expect([answer.count, answer.isWholeCount]).toEqual([expected.length, true]);
});

it("pages through a list by address, and sorts it by what is asked", async () => {
  const first = await ask("list", { limit: "2" });
  const second = await ask("list", { limit: "2", after: first.next as string });
  const byLoad = await ask("list", { sort: "load", limit: "2" });
  const byAge = await ask("list", { sort: "age", limit: "1" });

  expect(first.subnets.map(({ range }) => range)).toEqual(["10.0.0.0/8", "10.0.0.0/16"]);
  expect(second.subnets.map(({ range }) => range)).toEqual(["10.0.1.0/24", "10.1.0.0 - 10.2.127.255"]);
  expect(byLoad.subnets.map(({ pagesPerDay }) => pagesPerDay)).toEqual([30, 10]);
  expect(byAge.subnets.map(({ range }) => range)).toEqual(["10.0.0.0/8"]);
});

it("shows a level of the tree, and pages through its children", async () => {
  const level = await ask("tree", { at: "10.0.0.0/8", limit: "1" });
  const next = await ask("tree", { at: "10.0.0.0/8", limit: "1", after: level.next as string });
  const leaf = await ask("tree", { at: "10.0.1.77" });

  expect([level.subnet?.range, level.childCount]).toEqual(["10.0.0.0/8", 2]);
  expect([...level.children, ...next.children].map(({ range }) => range)).toEqual([
    "10.0.0.0/16",
    "10.1.0.0 - 10.2.127.255",
  ]);
  expect(next.next).toBeNull();
  expect(leaf.above.map(({ range }) => range)).toEqual(["10.0.0.0/8", "10.0.0.0/16"]);
  expect(leaf.subnet).toMatchObject({
    range: "10.0.1.0/24",
    state: "inherited",
    crawler: "berlin",
    decidedFor: "10.0.0.0/16",
    waiting: true,
  });
});

it("counts a map with a filter by the subnets that the filter leaves", async () => {
  const whole = (await ask("map", { layout: "whole" })) as WholeAnswer;
  const filtered = (await ask("map", { layout: "whole", crawler: "athens" })) as WholeAnswer;

  expect(whole.legend.map(({ label, subnets }) => [label, subnets])).toEqual([
    ["athens", 2],
    ["berlin", 2],
    ["registered, not crawled", 1],
  ]);
  expect(filtered.legend.map(({ label, subnets, share }) => [label, subnets, share])).toEqual([
    ["athens", 2, 1],
  ]);
  expect(whole.totals).toEqual({ subnets: 5, crawled: 4, pagesPerDay: 40, dueHosts: 1 });
  expect(filtered.addresses.registered).toBe(whole.addresses.registered);
  expect(filtered.addresses.chosen).toBeCloseTo(255 / 65536);
  expect(whole.blocks[0]).toMatchObject({
    range: "0.0.0.0/4",
    subnets: 4,
    crawler: "athens",
    pagesPerDay: 40,
  });
});

it("draws what is registered by itself, and tells of the subnet that is picked", async () => {
  const root = (await ask("map", { pick: "10.0.1.77" })) as OccupiedAnswer;
  const below = (await ask("map", { at: "10.0.0.0/16", measure: "pages" })) as OccupiedAnswer;

  expect(root.groups.map(({ range, subnets }) => [range, subnets])).toEqual(
    ranges.slice(0, 5).map((range) => [range, 1]),
  );
  expect(root.picked).toMatchObject({ range: "10.0.1.0/24", crawler: "berlin" });
  expect([below.at, below.groups.map(({ range, width }) => [range, width])]).toEqual([
    "10.0.0.0/16",
    [
      ["10.0.0.0/16", 540],
      ["10.0.1.0/24", 180],
    ],
  ]);
});

it("says of each row of the tree who crawls it and what is below, a change included", async () => {
  const partsOf = async (at: string) =>
    (await ask("tree", { at })).children.map(({ range, crawledBy }) => [
      range,
      crawledBy.map(({ label, subnets }) => `${label} ${subnets}`),
    ]);

  expect(await partsOf("ipv4")).toEqual([
    ["10.0.0.0/8", ["athens 2", "berlin 2"]],
    ["20.0.0.0/8", ["registered, not crawled 1"]],
  ]);
  delegate(asSubnetId(2), athens, 5);
  await explorer.settled();
  expect((await partsOf("ipv4"))[0]).toEqual(["10.0.0.0/8", ["athens 4"]]);
  delegate(asSubnetId(2), berlin, 40);
  await explorer.settled();
});

it.each([
  [{ at: "nowhere" }, "at: nowhere is not"],
  [{ view: "globe" }, "view: globe is not one of"],
  [{ limit: "100000" }, "limit: 100000 is not"],
  [{ state: "lost" }, "state: lost is not one of"],
  [{ minRttMs: "-1" }, "minRttMs: -1 is not"],
  [{ minPrefix: "1.5" }, "minPrefix: 1.5 is not a whole number"],
  [{ holder: "x".repeat(300) }, "holder is longer than 200"],
  [{ after: "; drop table subnet" }, "after: ; drop table subnet is not"],
])("says why %j cannot be asked", (query, words) => {
  expect(readQuestion((name) => (query as Record<string, string>)[name] ?? "")).toContain(words);
});

it("follows a delegation, with all that goes with it, in every tile that is kept", async () => {
  expect((explorer.map as ExploredMap).tiles[4].count).toBe(3);
  delegate(asSubnetId(1), berlin, 5);
  delegate(asSubnetId(5), athens, 9);
  await explorer.settled();

  const upper = childTile(rootTile(ipv4Space), 0);
  for (const tile of [rootTile(ipv4Space), upper, tileHolding(parseRange("10.0.0.0/8")!) as Tile])
    expect(await cellAt(tile, "10.2.0.0")).toMatchObject({ crawler: berlin, rttMs: 5, since: 100_000 });
  expect(await cellAt(rootTile(ipv4Space), "20.7.0.0")).toMatchObject({ crawler: athens, delegated: 255 });
  expect((await ask("list", { crawler: "berlin" })).subnets.map(({ range }) => range)).toEqual(
    ranges.slice(0, 4),
  );
});

it("draws a new registry generation in place of the old one, and what goes with a new decision in it", async () => {
  const facts = { parentId: null, holderId: null, country: null, registry: "arin" as const, name: "" };
  const subnets = ["30.0.0.0/8", "30.1.0.0/16"].map((range, index) => ({
    ...{ id: asSubnetId(11 + index), range: parseRange(range)!, ...facts },
  }));
  state.setTree(buildSubnetTree(subnets), 2);
  await explorer.settled();
  expect(await cellAt(rootTile(ipv4Space), "30.1.0.0")).toMatchObject({ registered: 255, delegated: 0 });
  expect(await cellAt(rootTile(ipv4Space), "10.0.0.0")).toMatchObject({ registered: 0 });

  delegate(asSubnetId(11), athens, 9);
  await explorer.settled();
  expect(await cellAt(rootTile(ipv4Space), "30.1.0.0")).toMatchObject({ crawler: athens, delegated: 255 });
  expect((await ask("list", { state: "inherited" })).subnets.map(({ range }) => range)).toEqual([
    "30.1.0.0/16",
  ]);
});
