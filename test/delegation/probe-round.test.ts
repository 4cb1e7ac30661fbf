/** One probe round against the real store: what is asked and by which method, what is stored, and what memory says afterwards. */
import { beforeEach, describe, expect, it } from "vitest";
import { crawlersWithoutRoom, DayBudget, type Fleet } from "#coordinator/place/crawlers/crawler";
import { delegateSubnet } from "#coordinator/place/delegation/probe-round";
import { originOf, type RoundSettings } from "#coordinator/place/delegation/round-questions";
import type { CrawlerId, SubnetId } from "#core/ids";
import type { ProbeMethod, ProbeOutcome } from "#protocol/messages";
import { type Answer, flowWorld, TableFleet } from "../support/flow-world.ts";
import { eachMs, noon, secondsAfterNoon } from "../support/store-world.ts";
import { learnDistance, nearestRound, runRound } from "./round-world.ts";

const world = flowWorld();
let [north, south, east] = [0, 0, 0] as unknown as [CrawlerId, CrawlerId, CrawlerId];
let subnetId: SubnetId;

beforeEach(async () => {
  north = await world.arrived("north");
  south = await world.arrived("south");
  east = await world.arrived("east");
  subnetId = await world.site(1);
});

const settings: RoundSettings = { ...nearestRound, policy: "exhaustive" };
const fleetOf = (online: readonly CrawlerId[], ...answers: (readonly [CrawlerId, Answer])[]) =>
  new TableFleet(online, { "5.1.1.7": new Map(answers) });
const round = async (fleet: TableFleet, differences: Partial<Parameters<typeof runRound>[2]> = {}) =>
  await runRound(world, subnetId, { state: await world.state(), fleet, settings, ...differences });
const probesStored = async () =>
  (
    await world.rows<{
      crawler_id: number;
      method: string;
      outcome: string;
      rtt_ms: number | null;
      detail: string;
    }>("select crawler_id, method, outcome, rtt_ms, detail from probe order by ordinal")
  ).map((row) => [row.crawler_id, row.method, row.outcome, row.rtt_ms, row.detail]);

it("asks about the URL's own address, host and port, by the settings' method", async () => {
  const fleet = fleetOf([north, south], [north, 10]);
  await round(fleet);

  const probe = { method: "connect", tries: 3, deadlineMs: 3000 };
  const site = { host: "s1.example", address: "5.1.1.7", port: 80, secure: false };
  expect(fleet.targets[0]).toEqual({ ...site, ...probe });
  const origins = ["http://a.example/x", "https://a.example/", "https://a.example:8443/"].map((url) =>
    originOf({ url, host: "a.example" }),
  );
  expect(origins.map(({ port, secure }) => [port, secure])).toEqual([
    [80, false],
    [443, true],
    [8443, true],
  ]);
});

it("stores every probe in order with the reason of a failure, the decision and the runner-up", async () => {
  const found = await round(fleetOf([north, south, east], ...eachMs([north, 30], [south, 12])));

  const decision = { crawlerId: south, rttMs: 12, runnerUpId: north, runnerUpRttMs: 30 };
  expect(found).toMatchObject(decision);
  expect(await probesStored()).toEqual([
    [north, "connect", "measured", 30, ""],
    [south, "connect", "measured", 12, ""],
    [east, "connect", "timed-out", null, "3000 ms"],
  ]);
  expect(
    await world.rows(
      "select policy, cause, target_url, crawler_id, runner_up_id, reason->>'type' as reason from probe_round",
    ),
  ).toEqual([
    {
      ...{ policy: "exhaustive", cause: "new-subnet", target_url: "http://s1.example/" },
      ...{ crawler_id: south, runner_up_id: north, reason: "fastest-of-all" },
    },
  ]);
  expect(await world.delegations.readAll()).toMatchObject([{ subnetId, measured: true, ...decision }]);
});

it("never probes a special-purpose address or a subnet that left the tree, and stores no round of it", async () => {
  const inside = await world.subnet("10.0.0.0", "10.0.0.255");
  const state = await world.state();
  const fleet = new TableFleet([north], { "10.0.0.7": new Map([[north, 1]]) });
  const target = { subnetId: inside, url: "http://in.example/", host: "in.example", address: "10.0.0.7" };
  const unchanging = { delegations: world.delegations, random: () => 0, now: () => noon };
  const ports = { state, fleet, ...unchanging, excluded: () => new Set<CrawlerId>() };
  await world.pool.query("update subnet set removed_in = 1 where subnet_id = $1", [subnetId]);

  expect(await delegateSubnet(target, "new-subnet", { ...ports, settings })).toBeNull();
  expect(await round(fleetOf([north], [north, 1]))).toBeNull();
  expect(fleet.asked).toEqual([]);
  expect(await world.rows("select from probe_round")).toEqual([]);

  const allowed = { ...settings, allowSpecialPurpose: true };
  expect(await delegateSubnet(target, "new-subnet", { ...ports, settings: allowed })).not.toBeNull();
  expect(await round(fleetOf([north], [north, 1]), { state })).not.toBeNull();
});

it("gives nothing to draining, full and offline crawlers, and does not ask them", async () => {
  const west = await world.arrived("west");
  await world.pool.query("update crawler set state = 'draining' where crawler_id = $1", [north]);
  const state = await world.state();
  // Reading what is known marks everybody offline; these are connected again.
  state.setCrawlers(
    state.crawlers.map((crawler) => ({
      ...crawler,
      state: crawler.crawlerId === north ? "draining" : "online",
    })),
  );
  const budget = new DayBudget();
  budget.spend(south, { pages: 1000, bytes: 0 }, noon);
  const fleet = fleetOf([north, south, west], ...eachMs([north, 1], [south, 2], [east, 3], [west, 4]));

  const found = await round(fleet, { state, excluded: () => crawlersWithoutRoom(state, budget, noon) });

  expect(found).toMatchObject({ crawlerId: west, reason: { type: "only-candidate" } });
  expect(fleet.asked).toEqual([]);
});

it("stores a round that nobody could take, and delegates nothing", async () => {
  const found = await round(fleetOf([north]), { excluded: () => new Set([north]) });

  expect(found).toMatchObject({ crawlerId: null, measured: false, probes: [] });
  expect(await world.rows("select crawler_id from probe_round")).toEqual([{ crawler_id: null }]);
  expect(await world.delegations.readAll()).toEqual([]);
});

it("calls a decision without any answer unmeasured, so that it is tried again and teaches nothing", async () => {
  const state = await world.state();

  const found = await round(fleetOf([north, south]), { state });

  expect(found).toMatchObject({ measured: false, rttMs: null, crawlerId: expect.any(Number) });
  expect(await world.delegations.unmeasuredBy(secondsAfterNoon(300))).toEqual([subnetId]);
  expect(state.knowledge.owners({ kind: "root", key: 0 })).toEqual([]);
});

it("teaches later rounds what it measured, by its own method only", async () => {
  const state = await world.state();
  learnDistance(state, north, south, 50);
  const found = await round(fleetOf([north, south], ...eachMs([north, 10], [south, 45])), {
    ...{ state, settings: nearestRound },
  });

  const learned = state.learnedRtts("connect");
  expect(found).toMatchObject({ crawlerId: north });
  expect(learned.figuresOf(learned.wonBy(north)[0]!, north)?.rttMs).toBe(10);
  expect(state.learnedRtts("head").size).toBe(0);
});

type Answers = Partial<Record<ProbeMethod, ProbeOutcome>>;

const measured = (method: ProbeMethod, rttMs: number): ProbeOutcome => ({
  ...{ type: "measured", method, rttMs, tries: 3 },
});
const timedOut = (method: ProbeMethod): ProbeOutcome => ({ type: "timed-out", method, reason: "3000 ms" });
const by = (rtts: Partial<Record<ProbeMethod, number>>): Answers =>
  Object.fromEntries(
    Object.entries(rtts).map(([method, ms]) => [method, measured(method as ProbeMethod, ms)]),
  );

/** Answers by crawler and by the requested method. */
class MethodFleet extends TableFleet {
  readonly #answers: ReadonlyMap<CrawlerId, Answers>;

  constructor(...answers: readonly Answers[]) {
    const byCrawler = new Map(answers.map((answer, at) => [[north, south, east][at]!, answer]));
    super([...byCrawler.keys()]);
    this.#answers = byCrawler;
  }

  override async probe(crawlerId: CrawlerId, target: Parameters<Fleet["probe"]>[1]): Promise<ProbeOutcome> {
    await super.probe(crawlerId, target);
    return this.#answers.get(crawlerId)?.[target.method] ?? timedOut(target.method);
  }
}

describe("crawlers that cannot all measure by the same method", () => {
  beforeEach(async () => {
    await world.pool.query("update crawler set probe_methods = '{head,connect,icmp}'");
  });
  const roundBy = async (method: ProbeMethod, fleet: MethodFleet) =>
    await round(fleet, { settings: { ...settings, probe: { ...settings.probe, method } } });

  it("are compared by connect when HEAD is refused to one, and asked again by it", async () => {
    // A cache beside north answers HEAD; the site itself is far away.
    const found = await roundBy(
      "head",
      new MethodFleet(
        by({ head: 2, connect: 80 }),
        { head: measured("connect", 30), connect: measured("connect", 30) },
        by({ connect: 45 }),
      ),
    );

    expect(found).toMatchObject({ crawlerId: south, rttMs: 30, runnerUpId: east, runnerUpRttMs: 45 });
    expect(found?.reason).toMatchObject({ askedCount: 3 });
    expect((await probesStored()).map((probe) => probe.slice(0, 4))).toEqual([
      [north, "head", "measured", 2],
      [south, "connect", "measured", 30],
      [north, "connect", "measured", 80],
      [east, "connect", "measured", 45],
    ]);
    expect(await world.rows("select method from probe_round")).toEqual([{ method: "connect" }]);
    // An heir is later chosen among comparable measurements, not by the cache.
    expect(await world.delegations.probedRtts([subnetId])).toMatchObject([
      { crawlerId: south, rttMs: 30 },
      { crawlerId: east, rttMs: 45 },
      { crawlerId: north, rttMs: 80 },
    ]);
  });

  const impossible = { type: "not-allowed", method: "icmp", reason: "not possible here" } as const;
  it.each<[string, ProbeMethod, Answers[], () => CrawlerId, number]>([
    [
      "are asked by connect at once when the first already fell back to it",
      "head",
      [{ head: measured("connect", 80) }, by({ connect: 30 }), by({ connect: 45 })],
      () => south,
      3,
    ],
    [
      "are asked by connect when one's echoes do not come back",
      "icmp",
      [by({ icmp: 10, connect: 12 }), { icmp: timedOut("icmp"), ...by({ connect: 8 }) }, by({ connect: 20 })],
      () => south,
      5,
    ],
    [
      "are asked by connect when one's machine cannot send echoes",
      "icmp",
      [by({ icmp: 10, connect: 12 }), { icmp: impossible, ...by({ connect: 8 }) }, by({ connect: 20 })],
      () => south,
      5,
    ],
    [
      "are compared by echoes while these come back, or nothing else does",
      "icmp",
      [by({ icmp: 10 }), { icmp: timedOut("icmp"), connect: timedOut("connect") }, by({ icmp: 7 })],
      () => east,
      4,
    ],
    [
      "are not compared with another method's measurement",
      "connect",
      [by({ connect: 30 }), { connect: measured("head", 1) }, by({ connect: 20 })],
      () => east,
      3,
    ],
  ])("%s", async (_, method, answers, winner, asked) => {
    const fleet = new MethodFleet(...answers);

    expect(await roundBy(method, fleet)).toMatchObject({ crawlerId: winner() });
    expect(fleet.asked).toHaveLength(asked);
  });

  it("are asked at most twice each, however they answer", async () => {
    const confused = {
      head: measured("connect", 9),
      connect: measured("head", 3),
      icmp: measured("head", 1),
    };
    const fleet = new MethodFleet(
      { head: measured("head", 5), connect: timedOut("connect") },
      confused,
      confused,
    );

    const found = await roundBy("head", fleet);

    for (const crawlerId of [north, south, east])
      expect(fleet.asked.filter((asked) => asked.crawlerId === crawlerId).length).toBeLessThanOrEqual(2);
    expect(JSON.stringify(found?.reason)).toContain("not comparable");
  });

  it("use a method that the fleet has when nobody has the configured one", async () => {
    await world.pool.query("update crawler set probe_methods = '{head}'");

    expect(await roundBy("connect", new MethodFleet(by({ head: 5 }), {}))).toMatchObject({
      crawlerId: north,
    });
  });
});
