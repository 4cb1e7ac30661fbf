/**
 * Rounds that check a decision, and the evidence for the crawler that has the subnet: `north` is 0.5 ms from the site,
 * `south` 170 ms. Whatever north's probe says, south has to beat what is known of north.
 */
import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { beforeEach, describe, expect, it } from "vitest";
import { crawlersWithoutRoom, DayBudget } from "#coordinator/place/crawlers/crawler";
import { DeniedTargets } from "#coordinator/place/delegation/denied-targets";
import { explainReason } from "#coordinator/place/delegation/policies/reason";
import type { RoundPorts } from "#coordinator/place/delegation/probe-round";
import { RecalibrationQueue } from "#coordinator/place/delegation/recalibration/recalibrate";
import { defaultRecalibrationRule } from "#coordinator/place/delegation/recalibration/rule";
import type { RoundSettings } from "#coordinator/place/delegation/round-questions";
import type { CoordinatorState } from "#coordinator/place/delegation/state";
import type { RoundCause } from "#core/explanation";
import type { CrawlerId, SubnetId } from "#core/ids";
import { Connector } from "#crawler/net/connector";
import { Prober } from "#crawler/probe/prober";
import type { ProbeOutcome } from "#protocol/messages";
import { afterConnecting } from "../migrating-crawler/support/after-connecting.ts";
import { testConfig } from "../migrating-crawler/support/test-config.ts";
import { type Answer, flowWorld, TableFleet } from "../support/flow-world.ts";
import { arrivedResult, keyOf, noon, roundOf, secondsAfterNoon, spoolId } from "../support/store-world.ts";
import { learnDistance, nearestRound, runRound } from "./round-world.ts";

const world = flowWorld();
let north: CrawlerId;
let south: CrawlerId;
let subnetId: SubnetId;
let state: CoordinatorState;
let fetches = 0;

beforeEach(async () => {
  north = await world.arrived("north");
  south = await world.arrived("south");
  subnetId = await world.site(1);
  await world.delegations.saveRound(roundOf(subnetId, [[north, 0.5]]));
  fetches = 0;
  await restart();
});

const url = "http://s1.example/";

const heldBack: ProbeOutcome = {
  ...{ type: "failed", code: "held-back", method: "connect" },
  reason: "the pages of this address leave it no turn in time",
};
const unreported: ProbeOutcome = {
  ...{ type: "failed", code: "unreported", method: "connect" },
  reason: "the crawler did not report within 5000 ms",
};
const silent: ProbeOutcome = { type: "timed-out", method: "connect", reason: "nothing within 3000 ms" };
/** Noticed after `rttMs`; it may have arrived up to `lateMs` earlier. */
const late = (rttMs: number, lateMs: number): ProbeOutcome => ({
  ...{ type: "measured", method: "connect", tries: 3, rttMs, lateMs },
});

async function restart(): Promise<void> {
  state = await world.state();
  learnDistance(state, north, south, 170);
}

/** North fetches the site's pages, one a second, with these times to connect and to the first byte. */
async function fetched(times: readonly number[], crawlerId = north): Promise<void> {
  const { hostHash, urlHash } = keyOf(url);
  for (const ms of times) {
    fetches += 1;
    await world.pool.query(
      `insert into page_fetch (host_hash, url_hash, crawler_id, fetched_at, outcome, connect_ms, first_byte_ms,
         total_ms, wire_bytes, body_bytes, shipped_bytes)
       values ($1, $2, $3, $4, 'fetched', $5, $6, $6, 1, 1, 1)`,
      [hostHash, urlHash, crawlerId, secondsAfterNoon(fetches), ms, ms + 1],
    );
  }
}

const newRecalibration = () =>
  new RecalibrationQueue({ ...world, state, now: () => secondsAfterNoon(fetches) }, defaultRecalibrationRule);

interface Answers {
  readonly north: Answer | readonly Answer[];
  readonly south?: Answer;
}

let fleet: TableFleet;

type Differences = Partial<Omit<RoundPorts, "fleet" | "state">> & { readonly settings?: RoundSettings };

async function round(cause: RoundCause, given: Answers, ports: Differences = {}) {
  const answers = new Map<CrawlerId, Answer | readonly Answer[]>([
    [north, given.north],
    [south, given.south ?? 170],
  ]);
  fleet = new TableFleet([north, south], { "5.1.1.7": answers });
  const recalibration = newRecalibration();
  return await runRound(world, subnetId, {
    ...{ state, fleet, cause, now: () => secondsAfterNoon(fetches) },
    fetchTimes: async (asked) => await recalibration.fetchTimes(asked),
    ...ports,
  });
}

/** The alarm of a host that was slow, and the round that it leads to. */
async function slowRound(given: Answers) {
  const recalibration = newRecalibration();
  const batch = { ...arrivedResult({ sequence: 1, leaseId: "1", url }), wireBytes: 1 };
  recalibration.note({ crawlerId: north, spoolId, results: [batch] });
  const found = await recalibration.findSlow();
  if (found.length === 0) return null;
  return await round("slow-fetches", given, {
    fetchTimes: async (asked) => await recalibration.fetchTimes(asked),
  });
}

/** Everybody is asked, whatever it is expected to save. */
const allAsked = { settings: { ...nearestRound, policy: "exhaustive" as const } };
const usual = [1, 1.2, 1.1, 1, 1.3, 1.1, 1, 1.2];
const owner = async () =>
  (await world.rows(`select crawler_id, rtt_ms, measured from delegation where subnet_id = ${subnetId}`))[0];
const askedOf = (crawlerId: CrawlerId) => fleet.asked.filter((one) => one.crawlerId === crawlerId).length;
const nameOf = (crawlerId: CrawlerId) => (crawlerId === north ? "north" : "south");

describe("a host that turned slow", () => {
  it("stays with a crawler whose probe was held back, since its slow fetches were quicker than the challenger", async () => {
    await fetched([...usual, 15, 16, 18, 15]);

    const found = await slowRound({ north: heldBack });

    expect(found).toMatchObject({ crawlerId: north, measured: true, runnerUpId: south, runnerUpRttMs: 170 });
    expect(found?.probes.at(-1)).toMatchObject({ crawlerId: north, how: "get", outcome: { rttMs: 15 } });
    expect(await owner()).toEqual({ crawler_id: north, rtt_ms: 0.5, measured: true });
  });

  it("stays with a crawler whose machine was busy, whatever times it measured", async () => {
    await fetched([...usual, 260, 190, 310, 240]);

    const found = await slowRound({ north: late(250, 246) });

    expect(found).toMatchObject({ crawlerId: north, rttMs: 0.5 });
    expect(found?.reason).toMatchObject({ type: "kept", by: "busy", leastMs: 4 });
    expect(state.learnedRtts("connect").vectors.size).toBe(0);
    expect(explainReason(found?.reason, nameOf)).toMatch(
      /^It stays with the crawler that had it: its machine was busy .* no more than 4 ms, and south \(170 ms\) is not nearer than that by 2 ms \(λ\)\./,
    );
  });

  it("stays with a crawler whose event loop is busy, as its prober reports", async () => {
    await fetched([...usual, 260, 190, 310, 240]);
    const site = createServer().listen(0, "127.0.0.1");
    await once(site, "listening");
    const config = testConfig({});
    const connector = new Connector(config);
    const prober = new Prober({
      connector,
      probeMethods: config.probeMethods,
      userAgent: () => "Nearcrawl/test",
    });
    const { port } = site.address() as AddressInfo;
    // As if ten programs wanted each processor.
    const calm = afterConnecting(() => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 250));
    const loopback = { host: "127.0.0.1", address: "127.0.0.1", port, secure: false } as const;
    const measured = await prober.probe({ ...loopback, method: "connect", tries: 1, deadlineMs: 5000 });
    calm();
    await connector.close();
    site.close();
    expect(measured).toMatchObject({ type: "measured", rttMs: expect.toSatisfy((ms: number) => ms > 170) });

    expect(await slowRound({ north: measured })).toMatchObject({ crawlerId: north, rttMs: 0.5 });
  });

  it("goes to a nearer crawler where the path is longer, as its probe shows", async () => {
    await fetched([...usual, 200, 201, 203, 200]);

    const found = await slowRound({ north: 199, south: 60 });

    expect(found).toMatchObject({ crawlerId: south, rttMs: 60, runnerUpId: north });
  });

  it("goes to a nearer crawler where the probe is always held back: the slow fetches are its answer", async () => {
    await fetched([...usual, 200, 201, 203, 200]);

    const found = await slowRound({ north: heldBack, south: 60 });

    expect(found).toMatchObject({ crawlerId: south, rttMs: 60, runnerUpId: north, runnerUpRttMs: 200 });
    expect(await world.rows("select detail from probe where how = 'get'")).toEqual([
      { detail: "the crawl's own latest fetches, no probe" },
    ]);
    expect(found?.probes.at(-1)).toMatchObject({ crawlerId: north, how: "get" });
  });

  it("goes by the fetches since it turned slow alone, also for a coordinator that was restarted in between", async () => {
    await fetched([...usual, 200, 201]);
    newRecalibration();
    await fetched([203, 200]);
    await restart();

    const found = await slowRound({ north: heldBack, south: 60 });

    expect(found).toMatchObject({ crawlerId: south });
  });
});

describe("an earlier decision", () => {
  it.each([
    ["was held back by the crawler's pages", heldBack],
    ["was not reported", unreported],
  ])("is kept with its earlier measurement where the probe of its crawler %s, twice", async (_, outcome) => {
    const found = await round("refresh", { north: outcome });

    expect(found).toMatchObject({ crawlerId: north, rttMs: 0.5, runnerUpId: south, runnerUpRttMs: 170 });
    expect(found?.reason).toMatchObject({ type: "kept", by: "before", leastMs: 0.5 });
    expect(askedOf(north)).toBe(2);
    expect(await owner()).toMatchObject({ crawler_id: north, measured: true });
  });

  const kept = { type: "kept" };
  it.each<[string, Answers, object, Differences?]>([
    [
      "is checked by the second probe where the first was held back",
      { north: [heldBack, 0.7] },
      { by: "north", rttMs: expect.closeTo(0.7), reason: expect.not.objectContaining(kept) },
    ],
    [
      "is replaced where the target answers another crawler, and its own no more",
      { north: silent },
      { by: "south", rttMs: 170 },
    ],
    [
      "is kept against a challenger that is nearer by less than a probe must be worth",
      { north: 10, south: 8.5 },
      { by: "north" },
      allAsked,
    ],
    [
      "is replaced by a crawler that is nearer by more than that",
      { north: 10, south: 7.5 },
      { by: "south" },
      allAsked,
    ],
    [
      "is kept where nobody answered, and its crawler's own limits kept it from asking",
      { north: heldBack, south: silent },
      { by: "north", rttMs: 0.5, measured: true },
    ],
    [
      "is to be tried again where nobody answered although everybody asked",
      { north: silent, south: silent },
      { by: "north", rttMs: null, measured: false },
    ],
  ])("%s", async (_title, given, expected, differences) => {
    const found = await round("refresh", given, differences);

    expect({ ...found, by: nameOf(found!.crawlerId!) }).toMatchObject(expected);
    expect(await owner()).toMatchObject({ crawler_id: found!.crawlerId, measured: found!.measured });
  });

  it("is kept where the target drops probes and answers fetches", async () => {
    await fetched([3, 2, 4, 3]);

    const found = await round("refresh", { north: silent });

    expect(found).toMatchObject({ crawlerId: north, measured: true });
    expect(found?.probes.at(-1)).toMatchObject({ crawlerId: north, how: "get", outcome: { rttMs: 2 } });
  });

  it("does not count a fetch that is older than an hour, or another crawler's", async () => {
    await fetched([3, 2, 4, 3]);
    fetches += 3700;
    await fetched([3, 2], south);

    expect(await round("refresh", { north: silent })).toMatchObject({ crawlerId: south });
  });

  it("is not taken away from a crawler that the policy did not ask", async () => {
    // Everything else is south's, so the policy asks there, and is content with 20 ms.
    for (let number = 2; number < 12; number++)
      await world.delegations.saveRound(roundOf(await world.site(number), [[south, 1]]));
    await restart();

    const found = await round("refresh", { north: 0.5, south: 20 });

    expect(found).toMatchObject({ crawlerId: north, rttMs: 0.5 });
  });

  it("keeps what was measured while its crawler is the only one there", async () => {
    fleet = new TableFleet([north], {});

    const found = await runRound(world, subnetId, { state, fleet, cause: "refresh" });

    expect(found).toMatchObject({ crawlerId: north, rttMs: 0.5, measured: true });
    expect(fleet.asked).toEqual([]);
  });

  it("is kept while its crawler has spent its day's budget, which keeps only new subnets from it", async () => {
    const budget = new DayBudget();
    budget.spend(north, { pages: 1000, bytes: 1 }, noon);
    const excluded = () => crawlersWithoutRoom(state, budget, noon);
    expect([...excluded()]).toEqual([north]);

    expect(await round("refresh", { north: 0.5 }, { excluded })).toMatchObject({ crawlerId: north });
    expect(await round("drained", { north: 0.5 }, { excluded })).toMatchObject({ crawlerId: south });
  });

  it("is not checked while its crawler is briefly offline", async () => {
    fleet = new TableFleet([south], { "5.1.1.7": new Map([[south, 170]]) });

    expect(await runRound(world, subnetId, { state, fleet, cause: "refresh" })).toBeNull();
    expect(fleet.asked).toEqual([]);
    expect(await runRound(world, subnetId, { state, fleet, cause: "crawler-left" })).toMatchObject({
      crawlerId: south,
    });
  });

  it("is replaced where the partner of its crawler does not allow the target", async () => {
    const denied = new DeniedTargets();
    denied.setList(north, { networks: ["5.1.1.0/24"], domains: [] });

    expect(await round("refresh", { north: 0.5 }, { denied })).toMatchObject({ crawlerId: south });
  });
});

describe("a new subnet", () => {
  beforeEach(async () => {
    await world.pool.query("delete from delegation");
    await restart();
  });

  it.each([
    ["that was held back", heldBack],
    ["whose machine was busy", late(400, 398)],
  ])("is not assigned before a crawler %s was asked once more", async (_, first) => {
    const found = await round("new-subnet", { north: [first, 0.5] }, allAsked);

    expect(found).toMatchObject({ crawlerId: north, rttMs: 0.5 });
    expect(askedOf(north)).toBe(2);
  });

  it("goes to the crawler that measured it where the other is held back twice", async () => {
    const found = await round("new-subnet", { north: heldBack }, allAsked);

    expect(found).toMatchObject({ crawlerId: south, rttMs: 170 });
    expect(askedOf(north)).toBe(2);
  });

  it("is not asked about again where the answer is as near as can be", async () => {
    expect(await round("new-subnet", { north: 0.4, south: heldBack }, allAsked)).toMatchObject({
      crawlerId: north,
    });
    expect(askedOf(south)).toBe(1);
  });
});
