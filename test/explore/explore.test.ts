/**
 * Maps, lists and levels of the tree on a world that can be followed in the head:
 *
 *   10.0.0.0/8          athens, 20 ms
 *   ├ 10.0.0.0/16       berlin, 40 ms; 30 pages a day
 *   │ └ 10.0.1.0/24     goes with berlin; 10 pages a day, one due host: waits for its own
 *   └ 10.1.0.0 - 10.2.127.255   goes with athens
 *   20.0.0.0/8          nobody
 *   2a00::/12           athens, 80 ms
 *   └ 2a00:1::/32       goes with athens
 */
import { beforeAll, expect, it } from "vitest";
import type { CrawlerRecord } from "#coordinator/place/crawlers/crawler";
import { CoordinatorState } from "#coordinator/place/delegation/state";
import { buildSubnetTree } from "#coordinator/place/subnets/subnet-tree";
import { exploreQuestion, showExplore } from "#coordinator/tell/explore/answer";
import { type ExploreAnswer, exploreInput } from "#coordinator/tell/explore/explore-api";
import { Explorer } from "#coordinator/tell/explore/explorer";
import type { ExploreReads } from "#coordinator/tell/explore/reads";
import { crawlerColour } from "#coordinator/web/format";
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
  { subnetId: asSubnetId(1), crawlerId: athens, rttMs: 20 },
  { subnetId: asSubnetId(2), crawlerId: berlin, rttMs: 40 },
  { subnetId: asSubnetId(6), crawlerId: athens, rttMs: 80 },
];
const since = "2026-03-01T11:10:01.000Z";

let state: CoordinatorState;
let explorer: Explorer;
let turns: number;
let loadsRead: number;

const reads: ExploreReads = {
  anycastSubnets: async () => [asSubnetId(6)],
  eachLoad: async (_recrawlDays, visit) => {
    loadsRead += 1;
    visit({ subnetId: asSubnetId(2), pagesPerDay: 30, dueHosts: 0 });
    visit({ subnetId: asSubnetId(3), pagesPerDay: 10, dueHosts: 1 });
  },
  finerSubnets: async () => [asSubnetId(3)],
  delegatedAt: async (ids) => new Map(ids.map((id) => [id, since])),
  holders: async (ids) => ids.map((holderId) => ({ holderId, name: `Holder ${holderId}`, handle: null })),
  holdersCalled: async (text) =>
    text === "H-2" ? [{ holderId: asHolderId(2), name: "Holder 2", handle: text }] : [],
};
const clock = { steadyMs: () => turns++, yieldTurn: async () => {} };

function readAnew(): void {
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
  loadsRead = 0;
  const onFault = (error: unknown) => expect.fail(String(error));
  explorer = new Explorer({ state, reads, clock, recrawlDays: () => 30, onFault });
}

// Tests that change the world come last.
beforeAll(readAnew);

function delegate(subnetId: SubnetId, crawlerId: typeof athens, rttMs: number): void {
  state.setDelegation({
    ...{ subnetId, crawlerId, rttMs },
    measured: true,
    runnerUpId: null,
    runnerUpRttMs: null,
  });
}

async function ask<View extends ExploreAnswer["view"]>(
  view: View,
  query: Readonly<Record<string, string>> = {},
) {
  const question = exploreQuestion(exploreInput.parse({ view, ...query }));
  const answer = await showExplore({ explorer, state, reads, clock }, await explorer.world(), question);
  return answer as Extract<ExploreAnswer, { view: View }>;
}

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
  [{ minLoad: "11" }, ["10.0.0.0/16"]],
  [{ at: "10.0.0.0/16" }, ["10.0.0.0/8", "10.0.0.0/16", "10.0.1.0/24"]],
])("filters the list by %j", async (query, expected) => {
  const answer = await ask("list", query);

  expect(answer.subnets.map(({ range }) => range)).toEqual(expected);
  expect([answer.count, answer.isWholeCount]).toEqual([expected.length, true]);
});

it("pages through a list by address and sorts it as asked", async () => {
  const first = await ask("list", { limit: "2" });
  const second = await ask("list", { limit: "2", after: first.next as string });
  const byLoad = await ask("list", { sort: "load", limit: "2" });
  const byRtt = await ask("list", { sort: "rtt", limit: "1" });

  expect(first.subnets.map(({ range }) => range)).toEqual(["10.0.0.0/8", "10.0.0.0/16"]);
  expect(second.subnets.map(({ range }) => range)).toEqual(["10.0.1.0/24", "10.1.0.0 - 10.2.127.255"]);
  expect(byLoad.subnets.map(({ pagesPerDay }) => pagesPerDay)).toEqual([30, 10]);
  expect([byRtt.count, byRtt.subnets.map(({ range }) => range)]).toEqual([2, ["10.0.0.0/16"]]);
});

it("shows a level of the tree and pages through its children", async () => {
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

it("draws each cell in the colour of the crawler with most subnets there", async () => {
  const root = await ask("map");
  const eight = await ask("map", { at: "10.0.0.0/9" });

  // A cell of the first square is a /12: the three of athens and berlin that start in 10.0.0.0/12 are one cell.
  expect(root.totals).toEqual({ subnets: 5, crawled: 4, pagesPerDay: 40, dueHosts: 1 });
  expect(root.legend.map(({ label, subnets, colour }) => [label, subnets, colour])).toEqual([
    ["athens", 2, crawlerColour(7)],
    ["berlin", 2, crawlerColour(9)],
    ["registered, not crawled", 1, expect.any(String)],
  ]);
  expect(root.legend.map(({ path }) => areaOf(path))).toEqual([16, 0, 16]);
  expect(root.blocks.slice(0, 2)).toMatchObject([
    { range: "0.0.0.0/4", x: 0, y: 0, subnets: 4, crawled: 4 },
    { range: "16.0.0.0/4", subnets: 1, crawled: 0 },
  ]);
  // In 10.0.0.0/8 a cell is a /20: sixteen of 10.0.0.0/16 are berlin's.
  expect([eight.at, eight.above, eight.legend.map(({ path }) => areaOf(path))]).toEqual([
    "10.0.0.0/8",
    ["0.0.0.0/0", "0.0.0.0/4"],
    [4096 - 16, 16],
  ]);
});

/** The area of a path of rectangles, in cells. */
const areaOf = (path: string) =>
  [...path.matchAll(/h(\d+)v1/g)].reduce((sum, [, width]) => sum + Number(width), 0);

it("shows for each row of the tree who crawls it and what is below, after a change too", async () => {
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
  expect((await partsOf("ipv4"))[0]).toEqual(["10.0.0.0/8", ["athens 4"]]);
  delegate(asSubnetId(2), berlin, 40);
});

it.each([
  [{ at: "nowhere" }, "at: nowhere is not"],
  [{ view: "globe" }, "view"],
  [{ limit: "100000" }, "limit"],
  [{ state: "lost" }, "state"],
  [{ minRttMs: "-1" }, "minRttMs"],
  [{ country: "Cyprus" }, "it is not a country code of two letters"],
  [{ holder: "x".repeat(300) }, "holder"],
  [{ after: "; drop table subnet" }, "after: ; drop table subnet is not"],
])("says why %j is invalid", (query, words) => {
  expect(() => exploreQuestion(exploreInput.parse(query))).toThrow(words);
});

it("reads the database again after a minute, without delaying the question", async () => {
  await ask("map");
  expect(loadsRead).toBe(1);
  turns += 60_000;
  await ask("map");
  await ask("map");
  expect(loadsRead).toBe(2);
});

it("follows a delegation with all its consequences", async () => {
  delegate(asSubnetId(1), berlin, 5);
  delegate(asSubnetId(5), athens, 9);

  expect((await ask("map")).legend.map(({ label, subnets }) => [label, subnets])).toEqual([
    ["berlin", 4],
    ["athens", 1],
  ]);
  expect((await ask("list", { crawler: "berlin" })).subnets.map(({ range }) => range)).toEqual(
    ranges.slice(0, 4),
  );
});

it("draws a new registry generation and the decisions in it", async () => {
  const facts = { parentId: null, holderId: null, country: null, registry: "arin" as const, name: "" };
  const subnets = ["30.0.0.0/8", "30.1.0.0/16"].map((range, index) => ({
    ...{ id: asSubnetId(11 + index), range: parseRange(range)!, ...facts },
  }));
  state.setTree(buildSubnetTree(subnets), 2);
  expect((await ask("map")).totals).toMatchObject({ subnets: 2, crawled: 0, pagesPerDay: 0 });

  delegate(asSubnetId(11), athens, 9);
  expect((await ask("map")).totals.crawled).toBe(2);
  expect((await ask("list", { state: "inherited" })).subnets.map(({ range }) => range)).toEqual([
    "30.1.0.0/16",
  ]);
});

it("draws a cell in the colour of the only crawler in it", async () => {
  const facts = { parentId: null, holderId: null, country: null, registry: "arin" as const, name: "" };
  const subnets = ["40.0.0.0/8", "40.1.0.0/16"].map((range, index) => ({
    ...{ id: asSubnetId(21 + index), range: parseRange(range)!, ...facts },
  }));
  state.setTree(buildSubnetTree(subnets), 3);
  delegate(asSubnetId(22), berlin, 9);

  // Both start in the first of sixteen cells.
  expect((await ask("map")).legend.map(({ label, path }) => [label, areaOf(path)])).toEqual([
    ["berlin", 1],
    ["registered, not crawled", 15],
  ]);
});
