/** Fetches of one crawler: changed routes, slow servers, and the crawler's own network. */
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

  /** By default each host is in a subnet of its own. */
  constructor(hosts: number, { mostHosts = 1000, subnets = hosts } = {}) {
    this.#hosts = hosts;
    this.#subnets = subnets;
    this.watch = new FetchWatch(defaultRecalibrationRule, mostHosts);
  }

  minutes(count: number, timesOf: TimesOf): void {
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

type TimesOf = (host: number, minute: number) => Times;

/** 30 to 49 ms by host, with little change from minute to minute. */
const usual: TimesOf = (host, minute) => ({
  firstByteMs: 30 + (host % 20) + ((minute * 7 + host) % 5),
});
const times =
  (factor: number): TimesOf =>
  (host, minute) => ({ firstByteMs: usual(host, minute).firstByteMs * factor });

const someDo =
  (are: (host: number) => boolean, others: TimesOf, instead: TimesOf) => (host: number, minute: number) =>
    (are(host) ? instead : others)(host, minute);
/** Two hosts at 0.5 ms and three at some 170 ms: what a machine adds, it adds to all alike. */
const calm: TimesOf = (host, minute) => ({ firstByteMs: (host < 2 ? 0.5 : 170) + (minute % 3) / 10 });
const late = [60, 240, 35, 180, 90, 410, 25];
const busy: TimesOf = (host, minute) => ({
  firstByteMs: calm(host, minute).firstByteMs + late[(2 * minute + host) % late.length]!,
});
/** Every other fetch has a connection of its own. */
const served =
  (connectMs: number, serverMs: number): TimesOf =>
  (_host, minute) => ({
    ...(minute % 2 === 0 ? { connectMs: connectMs + (minute % 3) } : {}),
    firstByteMs: connectMs + serverMs + (minute % 3),
  });
const evening: TimesOf = (host, minute) =>
  times(1.1 - 0.1 * Math.cos((2 * Math.PI * minute) / 1440))(host, minute);
const oneSubnet = { subnets: 1 };

it.each<
  [
    string,
    number,
    { subnets?: number },
    (readonly [minutes: number, timesOf: TimesOf])[],
    readonly string[],
    number,
  ]
>([
  [
    "names the hosts behind a changed route, and no others",
    ...([20, {}] as const),
    [
      [60, usual],
      [10, someDo((host) => host < 3, usual, times(2))],
    ],
    ...([["h0", "h1", "h2"], 0] as const),
  ],
  [
    "reports one crawler, and no host, when everything turned slow at once",
    ...([20, {}] as const),
    [
      [60, usual],
      [120, times(1.6)],
    ],
    ...([[], 1] as const),
  ],
  [
    "finds a changed route within a network that is slow as a whole",
    ...([20, {}] as const),
    [
      [60, usual],
      [60, times(1.6)],
      [10, someDo((host) => host === 7, times(1.6), times(3.2))],
    ],
    ...([["h7"], 1] as const),
  ],
  ["ignores evenings that are slower by a fifth", 20, {}, [[3 * 1440, evening]], [], 0],
  [
    "judges each host by itself where a crawler fetches few hosts of one subnet",
    ...([5, oneSubnet] as const),
    [
      [60, usual],
      [10, times(2)],
    ],
    ...([["h0", "h1", "h2", "h3", "h4"], 0] as const),
  ],
  [
    "does not blame routes for a busy machine",
    5,
    {},
    [
      [60, calm],
      [20, busy],
      [20, calm],
    ],
    [],
    0,
  ],
  [
    "finds a changed route as soon as the machine is calm again",
    ...([5, {}] as const),
    [
      [60, calm],
      [10, busy],
      [
        10,
        someDo(
          (host) => host === 0,
          calm,
          () => ({ firstByteMs: 150 }),
        ),
      ],
    ],
    ...([["h0"], 0] as const),
  ],
  [
    "does not take two slow hosts of five for a busy machine",
    ...([5, {}] as const),
    [
      [60, calm],
      [10, someDo((host) => host < 2, calm, busy)],
    ],
    ...([["h0", "h1"], 0] as const),
  ],
  [
    "blames the server for slow first bytes where connecting takes its usual time",
    ...([1, {}] as const),
    [
      [80, served(30, 20)],
      [40, served(30, 70)],
    ],
    ...([[], 0] as const),
  ],
  [
    "blames the route where connecting is slow as well, in one alarm for both",
    ...([1, {}] as const),
    [
      [80, served(30, 20)],
      [60, served(60, 20)],
    ],
    ...([["h0"], 0] as const),
  ],
])("the watch %s", (_, hosts, settings, phases, alarms, crawlers) => {
  const crawl = new Crawl(hosts, settings);
  for (const [minutes, timesOf] of phases) crawl.minutes(minutes, timesOf);

  expect(crawl.alarms.map(({ hostKey }) => hostKey).toSorted()).toEqual(alarms);
  const found = crawl.watch.takeCrawlerAlarms();
  expect(found).toHaveLength(crawlers);
  if (crawlers > 0) expect(found[0]).toMatchObject({ crawlerId: north, kind: "firstByte", hosts: 20 });
  expect(crawl.watch.takeCrawlerAlarms()).toEqual([]);
});

it("the watch keeps a bounded number of hosts, those fetched last", () => {
  const crawl = new Crawl(50, { mostHosts: 10 });
  crawl.minutes(2, usual);
  const { watch } = crawl;

  expect(watch.size).toBe(10);
  expect([watch.knows("h49", north), watch.knows("h39", north), watch.knows("h49", asCrawlerId(2))]).toEqual([
    ...[true, false, false],
  ]);
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

  it("says in words which times of which host changed, and how", () => {
    expect(slowFetchesWords(evidence)).toBe(
      "Fetches of www.example.org had become slow: time to connect usually 23 ms, the last 7 48 ms (medians), " +
        "too many in the upper part of what is usual to be chance.",
    );
    expect(slowFetchesBrief(evidence)).toBe("www.example.org slower: 23 ms → 48 ms over 7 fetches");
  });

  it("is parsed from a round's parameters, and nothing else is", () => {
    expect(slowFetchesIn({ lambdaMs: 0.1, evidence })).toEqual(evidence);
    expect(slowFetchesIn({ lambdaMs: 0.1 })).toBeNull();
    expect(slowFetchesIn({ evidence: { ...evidence, fetches: "many" } })).toBeNull();
  });
});
