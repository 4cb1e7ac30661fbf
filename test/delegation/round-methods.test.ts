/** Rounds in which crawlers cannot all measure by the same method: what is compared, and what is recorded. */
import { beforeEach, expect, it } from "vitest";
import type { Fleet } from "#coordinator/place/crawlers/crawler";
import type { CrawlerId, SubnetId } from "#core/ids";
import type { ProbeMethod, ProbeOutcome } from "#protocol/messages";
import { flowWorld, TableFleet } from "../support/flow-world.ts";
import { eachMs } from "../support/store-world.ts";
import { learnDistance, nearestRound, runRound } from "./round-world.ts";

const world = flowWorld();
let north: CrawlerId;
let south: CrawlerId;
let east: CrawlerId;
let subnetId: SubnetId;

beforeEach(async () => {
  north = await world.arrived("north");
  south = await world.arrived("south");
  east = await world.arrived("east");
  subnetId = await world.site(1);
  await world.pool.query("update crawler set probe_methods = '{head,connect,icmp}'");
});

const measured = (method: ProbeMethod, rttMs: number): ProbeOutcome => ({
  ...{ type: "measured", method, rttMs, tries: 3 },
});
const timedOut = (method: ProbeMethod): ProbeOutcome => ({ type: "timed-out", method, reason: "3000 ms" });

type Answers = Partial<Record<ProbeMethod, ProbeOutcome>>;

/** Answers by crawler and by the method that was asked for. */
class MethodFleet extends TableFleet {
  readonly #answers: ReadonlyMap<CrawlerId, Answers>;

  constructor(answers: ReadonlyMap<CrawlerId, Answers>) {
    super([...answers.keys()]);
    this.#answers = answers;
  }

  override async probe(crawlerId: CrawlerId, target: Parameters<Fleet["probe"]>[1]): Promise<ProbeOutcome> {
    await super.probe(crawlerId, target);
    return this.#answers.get(crawlerId)?.[target.method] ?? timedOut(target.method);
  }
}

/** As north, south and east answer. */
const answering = (...answers: readonly Answers[]) =>
  new MethodFleet(new Map(answers.map((answer, at) => [[north, south, east][at]!, answer])));

const round = async (
  fleet: MethodFleet,
  method: ProbeMethod,
  policy: "exhaustive" | "nearest" = "exhaustive",
) => {
  const settings = { ...nearestRound, policy, probe: { method, tries: 3, deadlineMs: 3000 } };
  return await runRound(world, subnetId, { state: await world.state(), fleet, settings });
};

const probesStored = async () =>
  await world.rows("select crawler_id, method, outcome, rtt_ms from probe order by ordinal");

it("settles on connect when HEAD is refused at one crawler, and asks the others again by it", async () => {
  const fleet = answering(
    // A cache beside it answers HEAD; the site itself is far away.
    { head: measured("head", 2), connect: measured("connect", 80) },
    { head: measured("connect", 30), connect: measured("connect", 30) },
    { connect: measured("connect", 45) },
  );

  const found = await round(fleet, "head");

  expect(found).toMatchObject({ crawlerId: south, rttMs: 30, runnerUpId: east, runnerUpRttMs: 45 });
  expect(found?.reason).toMatchObject({ askedCount: 3 });
  expect(await probesStored()).toEqual([
    { crawler_id: north, method: "head", outcome: "measured", rtt_ms: 2 },
    { crawler_id: south, method: "connect", outcome: "measured", rtt_ms: 30 },
    { crawler_id: north, method: "connect", outcome: "measured", rtt_ms: 80 },
    { crawler_id: east, method: "connect", outcome: "measured", rtt_ms: 45 },
  ]);
  expect(await world.rows("select method from probe_round")).toEqual([{ method: "connect" }]);
  // Whoever looks for an heir later is told what can be compared, not that the cache was near.
  expect(await world.delegations.probedRtts([subnetId])).toMatchObject([
    { crawlerId: south, rttMs: 30 },
    { crawlerId: east, rttMs: 45 },
    { crawlerId: north, rttMs: 80 },
  ]);
});

it("goes on by connect at once when the first crawler already had to", async () => {
  const fleet = answering(
    { head: measured("connect", 80) },
    { connect: measured("connect", 30) },
    { connect: measured("connect", 45) },
  );

  await round(fleet, "head");

  expect(fleet.targets.map(({ method }) => method)).toEqual(["head", "connect", "connect"]);
});

it.each([
  ["do not come back", timedOut("icmp")],
  ["its machine cannot send", { type: "not-allowed", method: "icmp", reason: "not possible here" } as const],
])("asks a crawler whose echoes %s by connect, and everybody else too", async (_, filtered) => {
  const fleet = answering(
    { icmp: measured("icmp", 10), connect: measured("connect", 12) },
    { icmp: filtered, connect: measured("connect", 8) },
    { connect: measured("connect", 20) },
  );

  const found = await round(fleet, "icmp");

  expect(found).toMatchObject({ crawlerId: south, rttMs: 8, runnerUpId: north, runnerUpRttMs: 12 });
  expect(fleet.asked.length).toBe(5);
});

it("stays with echoes while they come back, or nothing else does", async () => {
  const fleet = answering(
    { icmp: measured("icmp", 10) },
    { icmp: timedOut("icmp"), connect: timedOut("connect") },
    { icmp: measured("icmp", 7) },
  );

  const found = await round(fleet, "icmp");

  expect(found).toMatchObject({ crawlerId: east, rttMs: 7, runnerUpId: north });
});

it("asks nobody more than twice, however they answer", async () => {
  const confused = { head: measured("connect", 9), connect: measured("head", 3), icmp: measured("head", 1) };
  const fleet = answering({ head: measured("head", 5), connect: timedOut("connect") }, confused, confused);

  await round(fleet, "head");

  for (const crawlerId of [north, south, east]) {
    expect(fleet.asked.filter((asked) => asked.crawlerId === crawlerId).length).toBeLessThanOrEqual(2);
  }
});

it("uses a method that the fleet has when nobody has the one that is set", async () => {
  await world.pool.query("update crawler set probe_methods = '{head}'");
  const fleet = answering({ head: measured("head", 5) });

  const found = await round(fleet, "connect", "nearest");

  expect(found?.crawlerId).toBe(north);
});

it("teaches later rounds what it measured, by its own method only", async () => {
  const state = await world.state();
  learnDistance(state, north, south, 50);
  const fleet = new TableFleet([north, south], {
    "5.1.1.7": new Map(eachMs([north, 10], [south, 45])),
  });

  const found = await runRound(world, subnetId, { state, fleet });

  const learned = state.learnedRtts("connect");
  expect(found).toMatchObject({ crawlerId: north });
  expect(learned.figuresOf(learned.wonBy(north)[0]!, north)?.rttMs).toBe(10);
  expect(state.learnedRtts("head").size).toBe(0);
});
