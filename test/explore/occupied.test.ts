/**
 * The occupied space: each subnet of a view lies in one group and is counted once, the rectangles cover the picture
 * without gap or overlap, and a point of a picture names what is drawn there.
 */
import { beforeAll, describe, expect, it } from "vitest";
import { CoordinatorState } from "#coordinator/delegation/state";
import { drawnCell, type OccupiedAnswer, readQuestion, showExplore } from "#coordinator/explore/answer";
import { tilePicture } from "#coordinator/explore/colours";
import { type ExploredMap, Explorer } from "#coordinator/explore/explorer";
import { treemap } from "#coordinator/explore/occupied";
import { cellOfIndex, ipv4Space, tileAt } from "#coordinator/explore/space";
import { buildSubnetTree } from "#coordinator/subnets/subnet-tree";
import { asCrawlerId, asSubnetId } from "#core/ids";
import { formatRange, type IpRange, parseRange, rangeCovers } from "#core/ip/range";
import { seededRandom } from "#core/random";

const seed = Math.floor(Math.random() * 2 ** 31);
const random = seededRandom(seed);
const upTo = (most: number) => Math.floor(random() * most);
const crawlers = Array.from({ length: 15 }, (_, index) => asCrawlerId(index + 1));

let explorer: Explorer;
let state: CoordinatorState;
let ranges: IpRange[];
const clock = { now: () => new Date(1e11), steadyMs: () => 0, yieldTurn: async () => {} };
const reads = {
  eachMark: async () => {},
  eachLoad: async (_days: number, visit: (load: never) => void) => {
    for (let id = 1; id <= ranges.length; id += 3)
      visit({ subnetId: asSubnetId(id), pagesPerDay: 1 + (id % 50), dueHosts: id % 2 } as never);
  },
  finerSubnets: async () => [],
  holders: async () => [],
  holdersCalled: async () => [],
};
const ports = () => ({ explorer, state, reads, clock });

/** Blocks in blocks, ranges that are no blocks, and much that starts at the same address. */
function someRanges(): IpRange[] {
  const found = new Map<string, IpRange>();
  for (let tries = 0; tries < 900; tries += 1) {
    const length = [8, 12, 16, 16, 20, 22, 24, 24, 28][upTo(9)] as number;
    const size = 2 ** (32 - length);
    const base = (1 + upTo(6)) * 2 ** 24 + (random() < 0.3 ? 0 : upTo(2 ** 24));
    const first = Math.floor(base / size) * size;
    const last = random() < 0.15 ? first + Math.ceil(size * (0.3 + random())) : first + size - 1;
    const range: IpRange = { family: 4, first, last: Math.min(last, 2 ** 32 - 1) };
    found.set(formatRange(range), range);
  }
  return [...found.values()];
}

beforeAll(async () => {
  ranges = someRanges();
  state = new CoordinatorState();
  const subnets = ranges.map((range, index) => ({
    ...{ id: asSubnetId(index + 1), range, parentId: null, holderId: null, name: `NET-${index}` },
    country: index % 2 === 0 ? "CY" : "DE",
    registry: index % 3 === 0 ? ("arin" as const) : ("ripencc" as const),
  }));
  state.setTree(buildSubnetTree(subnets), 1);
  state.setCrawlers(crawlers.map((crawlerId) => ({ crawlerId, name: `crawler-${crawlerId}` })) as never);
  for (let id = 1; id <= ranges.length; id += 1)
    if (random() < 0.5)
      state.setDelegation({
        ...{ subnetId: asSubnetId(id), crawlerId: crawlers[upTo(crawlers.length)]!, rttMs: upTo(200) },
        ...{ measured: true, runnerUpId: null, runnerUpRttMs: null },
      });
  explorer = new Explorer(
    { state, reads, clock, onFault: (error) => expect.fail(String(error)) },
    { subnetsPerTile: 1e9, mostTiles: 1, readLoadsEveryMs: 1e9, recrawlDays: 30 },
  );
  await explorer.settled();
});

const questionOf = (query: Readonly<Record<string, string>>) => {
  const question = readQuestion((name) => ({ view: "map", ...query })[name] ?? "");
  if (typeof question === "string") throw new Error(question);
  return question;
};

const occupied = async (query: Readonly<Record<string, string>>) =>
  (await showExplore(ports(), explorer.map as ExploredMap, questionOf(query))) as OccupiedAnswer;

function randomView(): Record<string, string> {
  const length = [0, 0, 5, 8, 8, 10, 14, 16, 20, 24][upTo(10)] as number;
  const size = 2 ** (32 - length);
  const first = length === 0 ? 0 : Math.floor(((1 + upTo(6)) * 2 ** 24 + upTo(2 ** 24)) / size) * size;
  return {
    at: formatRange({ family: 4, first, last: first + size - 1 }),
    colour: ["crawler", "rtt", "load", "registry"][upTo(4)] as string,
    measure: ["subnets", "pages", "addresses"][upTo(3)] as string,
    ...(random() < 0.4 ? { country: "CY" } : {}),
  };
}

describe(`the occupied space (seed ${seed})`, () => {
  it("puts every subnet of a view into one group, and counts it once in legend and totals", async () => {
    for (let round = 0; round < 60; round += 1) {
      const query = randomView();
      const { groups, totals, legend, at } = await occupied(query);
      const view = parseRange(at) as IpRange;
      const expected = ranges.filter(
        (range, index) =>
          range.first >= view.first &&
          range.first <= view.last &&
          !(range.first === view.first && range.last > view.last) &&
          (query.country === undefined || index % 2 === 0) &&
          (query.measure !== "pages" || index % 3 === 0),
      );

      const sum = (counts: readonly { readonly subnets: number }[]) =>
        counts.reduce((all, { subnets }) => all + subnets, 0);
      expect([query, totals.subnets, sum(groups), sum(legend)]).toEqual([
        query,
        ...[expected.length, expected.length, expected.length],
      ]);
      for (const { subnets, parts } of groups) expect(sum(parts)).toBe(subnets);
      const single = groups.filter(({ isSubnet }) => isSubnet).map(({ range }) => range);
      expect(expected.map(formatRange)).toEqual(expect.arrayContaining(single));
    }
  });

  it("covers the picture without gap or overlap, and in it every subnet by itself once there is room", async () => {
    for (let round = 0; round < 60; round += 1) {
      const { groups, width, height } = await occupied(randomView());
      if (groups.length === 0) continue;

      const area = groups.reduce((all, one) => all + one.width * one.height, 0);
      expect(area).toBeCloseTo(width * height, -2);
      for (let point = 0; point < 20; point += 1) {
        const [x, y] = [random() * width, random() * height];
        const hit = groups.filter(
          (one) => x >= one.x && x < one.x + one.width && y >= one.y && y < one.y + one.height,
        );
        expect([x, y, hit.length]).toEqual([x, y, 1]);
      }
      if (groups.length < 150) expect(groups.every(({ isSubnet }) => isSubnet)).toBe(true);
    }
  });

  it("opens a group into a view with as many subnets", async () => {
    for (let round = 0; round < 20; round += 1) {
      const query = { ...randomView(), at: "0.0.0.0/0" };
      for (const group of (await occupied(query)).groups.filter(({ isSubnet }) => !isSubnet))
        expect([group.range, (await occupied({ ...query, at: group.range })).totals.subnets]).toEqual([
          group.range,
          group.subnets,
        ]);
    }
  });

  it("colours a subnet's rectangle as the legend does what the list says of it", async () => {
    const { groups, legend } = await occupied({ at: "1.0.0.0/8" });
    for (const { range, isSubnet, parts } of groups) {
      if (!isSubnet) continue;
      const { picked } = await occupied({ at: "1.0.0.0/8", pick: range });
      const entry = legend.find(({ label }) => label === (picked?.crawler ?? "registered, not crawled"));

      expect([range, picked?.range, parts[0]?.colour]).toEqual([range, range, entry?.colour]);
    }
  });
});

it(`names at any point of a tile the subnet whose colour is drawn there (seed ${seed})`, async () => {
  const map = explorer.map as ExploredMap;
  for (let round = 0; round < 30; round += 1) {
    const zoom = upTo(8);
    const first = (1 + upTo(6)) * 2 ** 24 + upTo(2 ** 24);
    const tile = tileAt(ipv4Space, zoom, Math.floor(first / 2 ** (32 - 2 * zoom)))!;
    const question = questionOf({ layout: "whole" });
    const cells = await explorer.cells(map, tile, null);
    const pixels = tilePicture(tile, cells, { colouring: "crawler", nowSeconds: 1e8 });
    for (let point = 0; point < 30; point += 1) {
      const cell = upTo(65_536);
      const at = cellOfIndex(tile.index * 65_536 + cell, zoom + 8);
      const pixel = pixels[(at.y % 256) * 256 + (at.x % 256)] as number;
      const { subnet } = await drawnCell(ports(), map, { ...question, tile, cell });

      const number = subnet?.crawler ? Number(subnet.crawler.slice(8)) : 0;
      const drawn = pixel < 3 ? 0 : 1 + (Math.floor((pixel - 3) / 3) % 12);
      expect([zoom, cell, subnet?.range, drawn]).toEqual([
        ...[zoom, cell, subnet?.range],
        number === 0 ? 0 : 1 + ((number - 1) % 12),
      ]);
      expect([cell, pixel === 0]).toEqual([cell, subnet === null]);
    }
  }
});

it("draws what weighs next to nothing large enough to be hit", () => {
  const rectangles = treemap([1e6, 1, 1e6, 0], { x: 0, y: 0, width: 720, height: 720 });

  for (const { width, height } of rectangles) expect(width * height).toBeGreaterThan(200);
});

it("holds a subnet in the block that it was asked for with", async () => {
  const { picked } = await occupied({ at: "ipv4", pick: formatRange(ranges[0] as IpRange) });

  expect(rangeCovers(parseRange(picked?.range ?? "") as IpRange, ranges[0] as IpRange)).toBe(true);
});
