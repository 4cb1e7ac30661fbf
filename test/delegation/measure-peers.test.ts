/** Which peers crawlers are asked to measure, minute by minute, in a fleet that may not answer. */
import { expect, it } from "vitest";
import type { CrawlerRecord } from "#coordinator/place/crawlers/crawler";
import { PeerTurns } from "#coordinator/place/delegation/measure-peers";
import { CoordinatorState } from "#coordinator/place/delegation/state";
import { landmarkCount } from "#coordinator/place/distances/peers";
import { asCrawlerId, type CrawlerId } from "#core/ids";
import type { CoordinatorMessage } from "#protocol/coordinator-messages";
import { noon } from "../support/store-world.ts";

type Peers = Extract<CoordinatorMessage, { type: "coordinator:peers" }>["peers"];

/** Crawlers on a line, 1 ms apart; those in `silent` measure nothing. */
function fleet(size: number) {
  const online: CrawlerId[] = Array.from({ length: size }, (_, index) => asCrawlerId(index + 1));
  const state = new CoordinatorState();
  const clock = { ms: noon.getTime() };
  const sent = new Map<CrawlerId, number>();
  const silent = new Set<CrawlerId>();
  const addresses = new Set<string>();
  const place = () =>
    state.setCrawlers(
      online.map((crawlerId) => ({
        ...record,
        crawlerId,
        address: `9.0.${crawlerId >> 8}.${crawlerId & 255}`,
      })),
    );
  const answer = (from: CrawlerId, peers: Peers) => {
    sent.set(from, (sent.get(from) ?? 0) + peers.length);
    for (const { address } of peers) addresses.add(address);
    if (silent.has(from)) return;
    const to = peers.map((peer) => asCrawlerId(peer.crawlerId));
    state.learnRtts(
      to.map((peer) => ({ from, to: peer, rttMs: Math.abs(from - peer), method: "connect" })),
      new Date(clock.ms),
    );
  };
  const turns = new PeerTurns({
    state,
    now: () => new Date(clock.ms),
    gateway: {
      online: () => online,
      send: (crawlerId, message) => {
        if (message.type === "coordinator:peers") answer(crawlerId, message.peers);
        return true;
      },
    },
  });
  place();
  /** Runs one turn per minute; returns the number of requested measurements. */
  const minutes = (count: number): number => {
    let asked = 0;
    for (let minute = 0; minute < count; minute++) {
      asked += turns.next();
      clock.ms += 60_000;
    }
    return asked;
  };
  const arrive = () => {
    online.push(asCrawlerId(online.length + 1));
    place();
  };
  return { addresses, state, online, clock, sent, silent, turns, minutes, arrive };
}

const record: Omit<CrawlerRecord, "crawlerId"> = {
  name: "",
  address: null,
  subnetId: null,
  country: null,
  place: null,
  latitude: null,
  longitude: null,
  pagesPerDay: 1000,
  bytesPerDay: 1e9,
  concurrentHosts: 10,
  probeMethods: ["connect"],
  state: "online",
  lastSeenAt: null,
  offlineReason: null,
  drainingSince: null,
  joiningSince: null,
};

it("has a small fleet measure itself at once, and each pair again every ten minutes", () => {
  const { state, online, minutes } = fleet(12);

  expect(minutes(1)).toBe(132);
  expect(state.rttCoverage(online)).toBe(1);
  expect(minutes(9)).toBe(0);
  expect(minutes(10)).toBe(132);
});

it("has a newcomer and the others measure each other at once", () => {
  const { state, online, minutes, arrive } = fleet(12);
  minutes(1);
  arrive();

  minutes(1);

  expect(state.rttCoverage(online)).toBe(1);
});

it("keeps a fleet of 300 within 48 measurements in ten minutes each, and lets it settle after one turn", () => {
  const { state, online, sent, minutes } = fleet(300);

  minutes(1);
  expect(state.rttCoverage(online)).toBe(1);
  minutes(4);
  sent.clear();
  minutes(10);

  expect(Math.max(...sent.values())).toBeLessThanOrEqual(48);
  // Landmarks need not ask, because everybody has measured them.
  expect(sent.size).toBeGreaterThanOrEqual(300 - landmarkCount);
});

it("gives nobody in a large fleet two turns in a minute, however often arrivals hurry it", () => {
  const { turns } = fleet(300);
  turns.next();

  expect(turns.next()).toBe(0);
});

it("repeats unanswered requests of a new crawler each minute, and leaves out crawlers without an address", () => {
  const { silent, online, sent, minutes, state } = fleet(3);
  for (const crawlerId of online) silent.add(crawlerId);
  minutes(3);
  expect([...sent.values()]).toEqual([6, 6, 6]);

  state.setCrawlers(
    state.crawlers.map((crawler) => ({
      ...crawler,
      address: crawler.crawlerId === 3 ? null : crawler.address,
    })),
  );
  sent.clear();
  minutes(1);

  expect([...sent]).toEqual([
    [1, 1],
    [2, 1],
    [3, 2],
  ]);
});

it("spreads 1,500 arrivals at once over time, with at most 48 measurements per crawler in ten minutes", () => {
  const { state, online, clock, sent, turns } = fleet(1500);
  const perTurn: number[] = [];

  for (let second = 0; second < 600; second += 2) {
    perTurn.push(turns.next(), turns.next());
    clock.ms += 2000;
  }

  expect(Math.max(...perTurn)).toBeLessThanOrEqual(3200);
  expect(Math.max(...sent.values())).toBeLessThanOrEqual(48);
  expect(sent.size).toBe(1500);
  expect(state.rttCoverage(online)).toBe(1);
});

it("measures crawlers at their seen address, unless that is no public one", () => {
  const { state, addresses, turns } = fleet(3);
  state.setCrawlers(
    state.crawlers.map((crawler) => ({
      ...crawler,
      ...(crawler.crawlerId === 2 ? { seenAddress: "9.9.9.9" } : {}),
      ...(crawler.crawlerId === 3 ? { seenAddress: "127.0.0.1" } : {}),
    })),
  );

  turns.next();

  expect(addresses).toEqual(new Set(["9.0.0.1", "9.9.9.9", "9.0.0.3"]));
});
