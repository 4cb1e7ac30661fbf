/**
 * Twelve crawlers, real stores and the everyday policy: one claims to be beside ten chosen subnets. The cost of second
 * witnesses, over thousands of rounds, is in test/bench/results/trust.md.
 */
import { beforeEach, describe, expect, it } from "vitest";
import type { FinishedRound } from "#coordinator/place/delegation/delegation";
import { judgeWin } from "#coordinator/place/delegation/policies/policies";
import { explainReason } from "#coordinator/place/delegation/policies/reason";
import type { CoordinatorState } from "#coordinator/place/delegation/state";
import type { CrawlerId, SubnetId } from "#core/ids";
import { seededRandom } from "#core/random";
import { flowWorld, TableFleet } from "../support/flow-world.ts";
import { learnDistances, nearestRound, runRound } from "./round-world.ts";

/** Four towns of three crawlers each, in ms; the first crawler of the first town lies. */
const towns = [
  [0, 0],
  [90, 0],
  [0, 110],
  [120, 100],
] as const;
const beside = (town: number, number: number) =>
  [towns[town]![0] + 3 * number, towns[town]![1] + 2 * number] as const;
const crawlerPlaces = Array.from({ length: 12 }, (_, at) => beside(Math.floor(at / 3), at % 3));
const apartMs = (a: readonly [number, number], b: readonly [number, number]) =>
  2 + Math.hypot(a[0] - b[0], a[1] - b[1]);
const distances = crawlerPlaces.map((a) => crawlerPlaces.map((b) => apartMs(a, b)));

const world = flowWorld();
let crawlers: CrawlerId[];
let state: CoordinatorState;
let subnets: SubnetId[];

beforeEach(async () => {
  [crawlers, subnets] = [[], []];
  for (let at = 0; at < 12; at += 1) crawlers.push(await world.arrived(`crawler-${at}`));
  for (let number = 1; number <= 10; number += 1) subnets.push(await world.site(number));
  state = await world.state();
});

/** Subnets 1 to 10, in turn near the three other towns; `says` is what the first crawler reports. */
async function rounds(says: (rttMs: number) => number, hasWitnesses = true) {
  const random = seededRandom(7);
  const table = subnets.map((_, at) => {
    const rtts = crawlerPlaces.map((place) => apartMs(beside(1 + ((at + 1) % 3), 1), place));
    const answers = crawlers.map(
      (id, crawler) => [id, crawler === 0 ? says(rtts[0]!) : rtts[crawler]!] as const,
    );
    return [`5.1.${at + 1}.7`, new Map(answers)] as const;
  });
  const fleet = new TableFleet(crawlers, Object.fromEntries(table));
  const settings = { ...nearestRound, hasWitnesses };
  const finished: FinishedRound[] = [];
  for (const subnetId of subnets)
    finished.push((await runRound(world, subnetId, { state, fleet, settings, random }))!);
  return { finished, won: finished.filter(({ crawlerId }) => crawlerId === crawlers[0]), fleet, settings };
}

describe("a crawler that claims to be beside chosen subnets", () => {
  it("wins all of them where reports are believed, and loses them when they are checked by witnesses", async () => {
    learnDistances(state, crawlers, distances);
    const { won, fleet, settings } = await rounds(() => 3, false);
    expect(won).toHaveLength(10);

    const checked: unknown[] = [];
    for (const { subnetId } of won) {
      const witnessed = { state, fleet, settings: { ...settings, hasWitnesses: true } };
      checked.push((await runRound(world, subnetId, { ...witnessed, cause: "refresh" }))?.crawlerId);
    }
    expect(checked).not.toContain(crawlers[0]);
  });

  it("wins at most one of ten against witnesses, is not accused, and the reason names its report", async () => {
    learnDistances(state, crawlers, distances);
    const { finished, won } = await rounds(() => 3);

    expect(won.length).toBeLessThanOrEqual(1);
    const words = finished.map(({ reason }) => explainReason(reason, (id) => `crawler ${id}`)).join(" ");
    expect(words).toMatch(/crawler \d+ [\d.]+ ms \(it said 3 ms, which others contradict\)/);
    const { rows } = await world.pool.query("select from crawler_trust where probes_doubted_at is not null");
    expect(rows).toEqual([]);
  });

  it("gains nothing by claiming that the others are beside it", async () => {
    learnDistances(state, crawlers, [crawlerPlaces.map(() => 1), ...distances.slice(1)]);

    expect((await rounds(() => 3)).won).toEqual([]);
  });
});

describe("honest crawlers", () => {
  it("get what they are nearest to, and are believed where nobody knows the distances between them", async () => {
    learnDistances(state, crawlers, distances);
    const { finished } = await rounds((rttMs) => rttMs);
    expect(finished.filter(({ rttMs }) => rttMs === null || rttMs > 12)).toEqual([]);

    state = await world.state();
    const unknown = await rounds((rttMs) => rttMs);
    expect(unknown.finished.every(({ measured }) => measured)).toBe(true);
  });

  it("lose nothing to a single witness who lies, where another is beside them", () => {
    learnDistances(state, crawlers, distances);
    const [winner, liar, neighbour] = crawlers as [CrawlerId, CrawlerId, CrawlerId];
    const won = {
      winner: { crawlerId: winner, rttMs: 4 },
      others: [{ crawlerId: liar, rttMs: 400 }],
      ...{ fleet: state.fleetOf(crawlers), looks: 1, draw: 0, nextWithoutIt: () => null },
      mayAsk: (id: CrawlerId) => id >= neighbour,
    };
    const heard = [...won.others, { crawlerId: neighbour, rttMs: 8 }];

    expect(judgeWin(won).type).toBe("ask");
    expect(judgeWin({ ...won, looks: 4 }).type).toBe("counts-as");
    expect(judgeWin({ ...won, others: heard, looks: 4 }).type).toBe("believed");
  });
});
