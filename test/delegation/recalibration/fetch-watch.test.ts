/** All fetches of a crawler together: routes that changed, servers that are slow, and the crawler's own network. */
import { describe, expect, it } from "vitest";
import {
  slowFetchesBrief,
  slowFetchesIn,
  slowFetchesWords,
} from "#coordinator/place/delegation/policies/reason";
import { FetchWatch, type HostAlarm } from "#coordinator/place/delegation/recalibration/fetch-watch";
import { defaultRecalibrationRule } from "#coordinator/place/delegation/recalibration/rule";
import { asCrawlerId, asSubnetId } from "#core/ids";

const north = asCrawlerId(1);
const minuteMs = 60_000;
const startMs = Date.UTC(2030, 0, 1, 12);

interface Times {
  readonly connectMs?: number;
  readonly firstByteMs: number;
}

/** Fetches of hosts by one crawler, every host once a minute. */
class Crawl {
  readonly watch: FetchWatch;
  readonly alarms: HostAlarm[] = [];
  readonly #hosts: number;
  readonly #subnets: number;
  #minute = 0;

  /** By default each host lies in a subnet of its own. */
  constructor(hosts: number, { mostHosts = 1000, subnets = hosts } = {}) {
    this.#hosts = hosts;
    this.#subnets = subnets;
    this.watch = new FetchWatch(defaultRecalibrationRule, mostHosts);
  }

  minutes(count: number, timesOf: (host: number, minute: number) => Times): void {
    for (let done = 0; done < count; done++) {
      this.#minute += 1;
      for (let host = 0; host < this.#hosts; host++) {
        const { connectMs = null, firstByteMs } = timesOf(host, this.#minute);
        const atMs = startMs + this.#minute * minuteMs + host;
        const alarm = this.watch.note({
          hostKey: `h${host}`,
          crawlerId: north,
          subnetId: asSubnetId(1 + (host % this.#subnets)),
          atMs,
          connectMs,
          firstByteMs,
        });
        if (alarm) this.alarms.push(alarm);
      }
    }
  }
}

/** 30 to 49 ms by host, and a little from minute to minute. */
const usual = (host: number, minute: number): Times => ({
  firstByteMs: 30 + (host % 20) + ((minute * 7 + host) % 5),
});
const times = (factor: number) => (host: number, minute: number) => ({
  firstByteMs: usual(host, minute).firstByteMs * factor,
});

describe("routes and the crawler's network", () => {
  it("names the hosts behind a changed route, and no others", () => {
    const crawl = new Crawl(20);
    crawl.minutes(60, usual);

    crawl.minutes(10, (host, minute) => (host < 3 ? times(2)(host, minute) : usual(host, minute)));

    expect(crawl.alarms.map(({ hostKey }) => hostKey).toSorted()).toEqual(["h0", "h1", "h2"]);
    expect(crawl.watch.takeCrawlerAlarms()).toEqual([]);
  });

  it("tells one crawler, and no host, when everything turned slow at once", () => {
    const crawl = new Crawl(20);
    crawl.minutes(60, usual);

    crawl.minutes(120, times(1.6));

    expect(crawl.alarms).toEqual([]);
    expect(crawl.watch.takeCrawlerAlarms()).toMatchObject([
      { crawlerId: north, kind: "firstByte", hosts: 20 },
    ]);
    expect(crawl.watch.takeCrawlerAlarms()).toEqual([]);
  });

  it("still finds a route within a network that is slow as a whole", () => {
    const crawl = new Crawl(20);
    crawl.minutes(60, usual);
    crawl.minutes(60, times(1.6));

    crawl.minutes(10, (host, minute) => times(host === 7 ? 3.2 : 1.6)(host, minute));

    expect(crawl.alarms.map(({ hostKey }) => hostKey)).toEqual(["h7"]);
  });

  it("lets the evening of a crawler pass: up by a fifth and down again, over three days", () => {
    const crawl = new Crawl(20);

    crawl.minutes(3 * 1440, (host, minute) =>
      times(1.1 - 0.1 * Math.cos((2 * Math.PI * minute) / 1440))(host, minute),
    );

    expect(crawl.alarms).toEqual([]);
    expect(crawl.watch.takeCrawlerAlarms()).toEqual([]);
  });

  it("calls nothing the crawler's network where it fetches few hosts of one subnet: each speaks for itself", () => {
    const crawl = new Crawl(5, { subnets: 1 });
    crawl.minutes(60, usual);

    crawl.minutes(10, times(2));

    expect(crawl.alarms).toHaveLength(5);
    expect(crawl.watch.takeCrawlerAlarms()).toEqual([]);
  });
});

/** Two hosts 0.5 ms away and three at some 170 ms: what a machine adds, it adds to all alike. */
describe("a machine that is busy", () => {
  const calm = (host: number, minute: number): Times => ({
    firstByteMs: (host < 2 ? 0.5 : 170) + (minute % 3) / 10,
  });
  const late = [60, 240, 35, 180, 90, 410, 25];
  const busy = (host: number, minute: number): Times => ({
    firstByteMs: calm(host, minute).firstByteMs + late[(2 * minute + host) % late.length]!,
  });

  it("is no reason to doubt the way to any host, however few it fetches", () => {
    const crawl = new Crawl(5);
    crawl.minutes(60, calm);

    crawl.minutes(20, busy);
    crawl.minutes(20, calm);

    expect(crawl.alarms).toEqual([]);
  });

  it("hides no route for longer than it is busy", () => {
    const crawl = new Crawl(5);
    crawl.minutes(60, calm);
    crawl.minutes(10, busy);

    crawl.minutes(10, (host, minute) => (host === 0 ? { firstByteMs: 150 } : calm(host, minute)));

    expect(crawl.alarms.map(({ hostKey }) => hostKey)).toEqual(["h0"]);
  });

  it("is not what makes two of five hosts slow at once", () => {
    const crawl = new Crawl(5);
    crawl.minutes(60, calm);

    crawl.minutes(10, (host, minute) => (host < 2 ? busy : calm)(host, minute));

    expect(crawl.alarms.map(({ hostKey }) => hostKey).toSorted()).toEqual(["h0", "h1"]);
  });
});

describe("connections and servers", () => {
  const served = (connectMs: number, serverMs: number) => (_host: number, minute: number) => ({
    ...(minute % 2 === 0 ? { connectMs: connectMs + (minute % 3) } : {}),
    firstByteMs: connectMs + serverMs + (minute % 3),
  });

  it("takes slow first bytes for the server's affair where connecting takes its usual time", () => {
    const crawl = new Crawl(1);
    crawl.minutes(80, served(30, 20));

    crawl.minutes(40, served(30, 70));

    expect(crawl.alarms).toEqual([]);
  });

  it("takes them for the route's where connecting is slow too, and alarms once for both", () => {
    const crawl = new Crawl(1);
    crawl.minutes(80, served(30, 20));

    crawl.minutes(60, served(60, 20));

    expect(crawl.alarms).toHaveLength(1);
  });

  it("keeps a bounded number of hosts, those fetched last", () => {
    const crawl = new Crawl(50, { mostHosts: 10 });
    crawl.minutes(2, usual);

    expect(crawl.watch.size).toBe(10);
    expect(crawl.watch.knows("h49", north)).toBe(true);
    expect(crawl.watch.knows("h39", north)).toBe(false);
    expect(crawl.watch.knows("h49", asCrawlerId(2))).toBe(false);
  });
});

describe("the evidence", () => {
  const evidence = {
    type: "slow-fetches",
    host: "www.example.org",
    rule: "change-point",
    kind: "connect",
    usualMs: 23.4,
    nowMs: 48.2,
    fetches: 7,
  } as const;

  it("says in words which times of which host, how they were and how they are", () => {
    expect(slowFetchesWords(evidence)).toBe(
      "Fetches of www.example.org had become slow: time to connect usually 23 ms, the last 7 48 ms (medians), " +
        "too many in the upper part of what is usual to be chance.",
    );
    expect(slowFetchesBrief(evidence)).toBe("www.example.org slower: 23 ms → 48 ms over 7 fetches");
  });

  it("is read back from a round's parameters, and nothing else is taken for it", () => {
    expect(slowFetchesIn({ lambdaMs: 0.1, evidence })).toEqual(evidence);
    expect(slowFetchesIn({ lambdaMs: 0.1 })).toBeNull();
    expect(slowFetchesIn({ evidence: { ...evidence, fetches: "many" } })).toBeNull();
  });
});
