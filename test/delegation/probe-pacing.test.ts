/** When a probe may go out. The clock is turned by hand: every time below is in ms after the start. */
import { describe, expect, it } from "vitest";
import type { Fleet } from "#coordinator/place/crawlers/crawler";
import {
  ProbeBudget,
  type ProbeBudgetSettings,
  pacedFleet,
} from "#coordinator/place/delegation/probe-pacing";
import { asCrawlerId, type CrawlerId } from "#core/ids";
import { seededRandom } from "#core/random";
import type { ProbeOutcome } from "#protocol/messages";
import { ManualClock, settled } from "../support/manual-clock.ts";

const wide: ProbeBudgetSettings = {
  perCrawlerAtOnce: 1000,
  perCrawlerPerSecond: 1000,
  perTargetPerSecond: 1000,
  perNetworkPerSecond: 1000,
  atOnce: 1000,
  perSecond: 1000,
};

interface Started {
  readonly crawlerId: CrawlerId;
  readonly address: string;
  readonly atMs: number;
}

function newBudget(settings: Partial<ProbeBudgetSettings>) {
  const clock = new ManualClock();
  const budget = new ProbeBudget({ ...wide, ...settings }, clock);
  const started: Started[] = [];
  const ends: (() => void)[] = [];
  /** A probe that lasts until `endOldest`, or `tookMs`. */
  const ask = (crawler: number, address: string, tookMs: number | null = null) => {
    const errand = { crawlerId: asCrawlerId(crawler), address };
    return budget.run(errand, async () => {
      started.push({ ...errand, atMs: clock.nowMs() });
      await new Promise<void>((resolve) => {
        if (tookMs === null) ends.push(resolve);
        else clock.wake(tookMs, resolve);
      });
    });
  };
  const endOldest = async () => {
    ends.shift()?.();
    await settled();
  };
  return { clock, budget, started, ask, endOldest, times: () => started.map(({ atMs }) => atMs) };
}

describe("the probe budget", () => {
  it("limits the probes under way for one crawler, while others go on", async () => {
    const { started, ask, endOldest, clock } = newBudget({ perCrawlerAtOnce: 2 });

    for (const last of [1, 2, 3]) void ask(1, `192.0.${last}.1`);
    void ask(2, "192.0.4.1");
    await clock.turnTo(5000);
    const before = started.map(({ crawlerId }) => crawlerId);
    await endOldest();

    expect(before).toEqual([1, 1, 2]);
    expect(started.at(-1)).toMatchObject({ crawlerId: 1, address: "192.0.3.1" });
  });

  it("limits the probes under way for all together", async () => {
    const { budget, ask, endOldest, clock } = newBudget({ atOnce: 3 });

    for (let number = 0; number < 10; number++) void ask(number + 1, `192.0.${number}.1`);
    await clock.turnTo(5000);
    expect([budget.underWay, budget.waiting]).toEqual([3, 7]);
    await endOldest();

    expect([budget.underWay, budget.waiting]).toEqual([3, 6]);
  });

  it("limits the probes of one target in any second", async () => {
    const { ask, clock, times } = newBudget({ perTargetPerSecond: 3 });

    for (let crawler = 1; crawler <= 8; crawler++) void ask(crawler, "192.0.2.1", 10);
    await clock.turnTo(10_000);

    expect(times()).toEqual([0, 0, 0, 1000, 1000, 1000, 2000, 2000]);
  });

  it("counts a /24 or a /48 as one network", async () => {
    const { ask, clock, started } = newBudget({ perNetworkPerSecond: 2 });

    for (const last of [1, 2, 3]) void ask(last, `192.0.2.${last}`, 10);
    void ask(4, "192.0.3.1", 10);
    for (const last of [1, 2, 3]) void ask(last, `2001:db8:1:${last}::1`, 10);
    void ask(4, "2001:db8:2::1", 10);
    await clock.turnTo(10_000);

    const late = started.filter(({ atMs }) => atMs > 0);
    expect(late.map(({ address, atMs }) => [address, atMs])).toEqual([
      ["192.0.2.3", 1000],
      ["2001:db8:1:3::1", 1000],
    ]);
  });

  it("does not let other networks wait behind one that is full", async () => {
    const { ask, clock, started } = newBudget({ perNetworkPerSecond: 1 });

    for (let number = 1; number <= 50; number++) void ask(number, "192.0.2.1", 10);
    void ask(51, "192.0.3.1", 10);
    await clock.turnTo(0);

    expect(started.map(({ address }) => address)).toEqual(["192.0.2.1", "192.0.3.1"]);
  });

  it("starts the oldest of those that wait for the same crawler first", async () => {
    const { ask, clock, endOldest, started } = newBudget({ perCrawlerAtOnce: 1, perNetworkPerSecond: 1 });

    void ask(1, "192.0.1.1");
    await clock.turnTo(0);
    // The oldest waits for its network and then for the crawler; the younger come from fresh networks.
    void ask(1, "192.0.1.2");
    for (let number = 2; number < 30; number++) void ask(1, `192.0.${number}.1`);
    await clock.turnTo(1500);
    for (let ended = 0; ended < 3; ended++) await endOldest();

    expect(started[1]?.address).toBe("192.0.1.2");
  });

  it("gives the room back when the work fails", async () => {
    const { budget, clock } = newBudget({ perCrawlerAtOnce: 1 });
    const errand = { crawlerId: asCrawlerId(1), address: "192.0.2.1" };

    const failed = budget.run(errand, async () => {
      throw new Error("no");
    });
    await expect(failed).rejects.toThrow("no");
    await clock.turnTo(0);

    expect(await budget.run(errand, async () => "done")).toBe("done");
    expect(budget.underWay).toBe(0);
  });

  it("starts everything at once when it is closed", async () => {
    const { budget, ask, clock, started } = newBudget({ perNetworkPerSecond: 1 });

    const asked = Array.from({ length: 20 }, (_, number) => ask(1, `192.0.2.${number}`, 0));
    budget.close();
    await clock.turnTo(0);
    await Promise.all(asked);

    expect(started).toHaveLength(20);
  });

  it.each([1, 2, 3])("keeps every limit and starts every probe, at random (seed %i)", async (seed) => {
    const random = seededRandom(seed);
    const draw = (most: number) => Math.floor(random() * most);
    const settings = {
      perCrawlerAtOnce: 2,
      perCrawlerPerSecond: 5,
      perTargetPerSecond: 2,
      perNetworkPerSecond: 3,
      atOnce: 10,
      perSecond: 20,
    };
    const { ask, budget, clock, started } = newBudget(settings);

    for (let turn = 0; turn < 40; turn++) {
      for (let probes = draw(20); probes > 0; probes--) {
        void ask(1 + draw(6), `192.0.${draw(8)}.${draw(3)}`, draw(400));
      }
      await clock.turnTo(clock.nowMs() + draw(500));
      expect(budget.underWay).toBeLessThanOrEqual(10);
    }
    await clock.turnTo(clock.nowMs() + 600_000);

    expect(budget.waiting).toBe(0);
    expect(mostInAnySecond(started, () => "all")).toBeLessThanOrEqual(20);
    expect(mostInAnySecond(started, ({ crawlerId }) => String(crawlerId))).toBeLessThanOrEqual(5);
    expect(mostInAnySecond(started, ({ address }) => address)).toBeLessThanOrEqual(2);
    expect(mostInAnySecond(started, ({ address }) => address.replace(/\.\d+$/, ""))).toBeLessThanOrEqual(3);
  });

  it("keeps to another pace from the moment it is set", async () => {
    const pace = { ...wide, perSecond: 2 };
    const clock = new ManualClock();
    const budget = new ProbeBudget(pace, clock);
    const times: number[] = [];
    const ask = () =>
      void budget.run({ crawlerId: asCrawlerId(1), address: "192.0.2.1" }, async () => {
        times.push(clock.nowMs());
      });

    for (let asked = 0; asked < 12; asked++) ask();
    await clock.turnTo(500);
    pace.perSecond = 4;
    await clock.turnTo(1500);
    pace.perSecond = 1;
    await clock.turnTo(4500);

    expect(times).toEqual([0, 0, 1000, 1000, 1000, 1000, 2000, 3000, 4000]);
  });
});

function mostInAnySecond(started: readonly Started[], keyOf: (one: Started) => string): number {
  let most = 0;
  for (const { atMs, ...one } of started) {
    const key = keyOf({ ...one, atMs });
    const within = started.filter(
      (other) => keyOf(other) === key && other.atMs >= atMs && other.atMs < atMs + 1000,
    );
    most = Math.max(most, within.length);
  }
  return most;
}

describe("the paced fleet", () => {
  const target: Omit<Parameters<Fleet["probe"]>[1], "port"> = {
    ...{ host: "a.example", address: "192.0.2.1", secure: false, method: "connect" },
    ...{ tries: 1, deadlineMs: 100 },
  };
  /** Crawlers that can probe only these ports. */
  const fleetFor = (ports: readonly number[]) => {
    const asked: number[] = [];
    const fleet: Fleet = {
      online: () => [],
      probe: async (_crawlerId, { port, method }): Promise<ProbeOutcome> => {
        asked.push(port);
        return ports.includes(port)
          ? { type: "measured", method, rttMs: port, tries: 1 }
          : { type: "failed", method, reason: "held back by the crawler" };
      },
    };
    return { asked, paced: pacedFleet(fleet, new ProbeBudget(wide)) };
  };

  it.each([
    ["a web port alone, where that is measured", [80, 443], { port: 443, secure: true }, [443]],
    ["a web port alone, also where it fails", [], { port: 80 }, [80]],
    ["another port alone, where that is measured", [8080], { port: 8080 }, [8080]],
    ["the usual port after another one that failed", [80, 443], { port: 8080 }, [8080, 80]],
    ["the usual port of https after another one", [80, 443], { port: 8443, secure: true }, [8443, 443]],
  ])("asks %s", async (_what, ports, changes, asked) => {
    const fleet = fleetFor(ports);

    await fleet.paced.probe(asCrawlerId(1), { ...target, ...changes });

    expect(fleet.asked).toEqual(asked);
  });
});
