/** Crawlers with impossible probe reports are excluded, with real stores and recorded rounds. */
import { beforeEach, describe, expect, it } from "vitest";
import { restoreTrust } from "#coordinator/crawl/trust/distrust-writes";
import { doubtImpossibleProbes } from "#coordinator/crawl/trust/probe-plausibility";
import { createTrustStore } from "#coordinator/crawl/trust/trust-store";
import { crawlersWithoutRoom, DayBudget } from "#coordinator/place/crawlers/crawler";
import type { CrawlerId, SubnetId } from "#core/ids";
import type { Incident } from "#core/incidents";
import { silentLog } from "#core/log";
import { flowWorld } from "../support/flow-world.ts";
import { noon, roundOf, secondsAfterNoon } from "../support/store-world.ts";

const world = flowWorld();
let crawlers: readonly CrawlerId[];
const asked: SubnetId[] = [];
const incidents: Incident[] = [];

/** Positions on a line, in ms. */
const places = [0, 40, 80, 120];

beforeEach(async () => {
  asked.length = 0;
  incidents.length = 0;
  crawlers = [
    await world.arrived("athens"),
    await world.arrived("vienna"),
    await world.arrived("london"),
    await world.arrived("dublin"),
  ];
  const pairs = crawlers.flatMap((from, a) =>
    crawlers.map(
      (to, b) => ({ from, to, rttMs: Math.abs(places[a]! - places[b]!) + 1, method: "connect" }) as const,
    ),
  );
  await world.crawlers.saveRtts(
    pairs.filter(({ from, to }) => from !== to),
    noon,
  );
});

/** Rounds of twelve subnets at 91 to 102 ms; the first crawler claims that the first `lies` of them are beside it. */
async function rounds(liesMs: number, lies = 12): Promise<void> {
  for (let number = 1; number <= 12; number += 1) {
    const subnetId = await world.subnet(`5.1.${number}.0`, `5.1.${number}.255`);
    const probes = crawlers.map(
      (id, at) =>
        [id, at === 0 && number <= lies ? liesMs : Math.abs(places[at]! - 90 - number) + 2] as const,
    );
    await world.delegations.saveRound(roundOf(subnetId, probes, { method: "connect" }));
  }
}

async function watch(): Promise<CrawlerId[]> {
  return await doubtImpossibleProbes({
    trust: createTrustStore(world.pool),
    state: await world.state(),
    peerRtts: async () => await world.crawlers.rtts(),
    request: (subnetIds) => void asked.push(...subnetIds),
    incidents: { note: (incident) => void incidents.push(incident) },
    log: silentLog,
    now: () => secondsAfterNoon(60),
  });
}

describe("probe reports", () => {
  it("that are too fast to be possible exclude the crawler, and its subnets are probed again", async () => {
    await rounds(3);

    expect(await watch()).toEqual([crawlers[0]]);

    const full = crawlersWithoutRoom(await world.state(), new DayBudget(), noon);
    expect([...full]).toEqual([crawlers[0]]);
    expect(asked).toHaveLength(11);
    expect(incidents).toMatchObject([
      {
        kind: "wrong-probe",
        words: expect.stringMatching(/too short to be possible.* on 11 of the 12 subnets/),
      },
    ]);
  });

  it("that are too fast on a few subnets accuse nobody", async () => {
    await rounds(3, 4);

    expect(await watch()).toEqual([]);
    expect(incidents).toEqual([]);
  });

  it("are reported once", async () => {
    await rounds(3);

    await watch();

    expect(await watch()).toEqual([]);
    expect(incidents).toHaveLength(1);
  });

  it("from before trust was restored do not accuse the crawler again", async () => {
    await rounds(3);
    await watch();
    await restoreTrust(world.pool, "athens", secondsAfterNoon(30));

    expect(await watch()).toEqual([]);
    expect(crawlersWithoutRoom(await world.state(), new DayBudget(), noon).size).toBe(0);
  });
});
