/**
 * WEB-SAILOR section 4.4, figure 5: two coordinators below a third crawl a densely linked world with the same result as
 * a single coordinator.
 */
import { afterAll, beforeAll, expect, it } from "vitest";
import { seededRandom } from "#core/random";
import { FaultyRelay } from "../support/relay.ts";
import { exchangeAll, hostOf, newCoordinator, type TestCoordinator } from "./related-coordinators-world.ts";

const hosts = ["a.gr", "b.gr", "c.gr", "d.de", "e.de", "f.de", "g.com", "h.com", "i.net"];
const pagesPerHost = 5;
const urls = hosts.flatMap((host) =>
  Array.from({ length: pagesPerHost }, (_, page) => `http://${host}/${page}`),
);

/** Each page links to the next one, so that all are found, and to five random others. */
function linksOf(url: string): string[] {
  const at = urls.indexOf(url);
  const random = seededRandom(1000 + at);
  const others = Array.from({ length: 5 }, () => urls[Math.floor(random() * urls.length)]!);
  return [...new Set([urls[(at + 1) % urls.length]!, ...others])].filter((one) => one !== url);
}

let top: TestCoordinator;
let greek: TestCoordinator;
let german: TestCoordinator;
beforeAll(async () => {
  [top, greek, german] = await Promise.all([newCoordinator(), newCoordinator(), newCoordinator()]);
});
afterAll(async () => await Promise.all([top, greek, german].map(async (one) => await one?.close())));

/** The frontier of a single coordinator. */
async function crawledAlone(): Promise<Record<string, number>> {
  await top.seed(urls[0]!);
  await top.crawl(linksOf);
  const frontier = await top.frontier();
  await top.startAnew();
  return frontier;
}

it("every URL is crawled once, by its owner, with all links, however often connections are cut", async () => {
  const alone = await crawledAlone();
  const random = seededRandom(7);
  // Messages have about 1 to 30 kB each way, so cuts fall into requests, into answers, and after them.
  const bytesOfNext = () => Math.floor(random() ** 2 * 15_000);
  const relays = [await FaultyRelay.open(top.port), await FaultyRelay.open(top.port)];
  for (const relay of relays) relay.set({ type: "cut-after", bytesOfNext });
  const [greekUrl, germanUrl] = relays.map(({ port }) => `http://127.0.0.1:${port}`);
  const asking = [
    await greek.join({ url: greekUrl!, key: await top.invite("greek"), owns: [".gr"] }, 2000),
    await german.join({ url: germanUrl!, key: await top.invite("german"), owns: [".de", "g.com"] }, 2000),
  ];
  await greek.seed(urls[0]!);
  const fetched = new Map<TestCoordinator, string[]>([
    [top, []],
    [greek, []],
    [german, []],
  ]);

  for (let crawled = 1; crawled > 0; ) {
    crawled = 0;
    for (const [one, before] of fetched) {
      const now = await one.crawl(linksOf);
      before.push(...now);
      crawled += now.length;
    }
    await exchangeAll(asking);
    // Moves URLs that were found before their owner joined.
    for (const one of fetched.keys()) await one.settle();
  }
  for (const relay of relays) relay.set({ type: "open" });
  await exchangeAll(asking);
  const cuts = relays.reduce((sum, relay) => sum + relay.cuts, 0);
  await Promise.all(relays.map((relay) => relay.close()));

  expect(cuts).toBeGreaterThan(5);
  expect([...fetched.values()].flat().sort()).toEqual([...urls].sort());
  expect(new Set(fetched.get(greek)!.map(hostOf))).toEqual(new Set(["a.gr", "b.gr", "c.gr"]));
  expect(new Set(fetched.get(german)!.map(hostOf))).toEqual(new Set(["d.de", "e.de", "f.de", "g.com"]));
  expect(new Set(fetched.get(top)!.map(hostOf))).toEqual(new Set(["h.com", "i.net"]));
  const together = { ...(await top.frontier()), ...(await greek.frontier()), ...(await german.frontier()) };
  expect(together).toEqual(alone);
  expect([await top.waiting(), await greek.waiting(), await german.waiting()]).toEqual([0, 0, 0]);
});
