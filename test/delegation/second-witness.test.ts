/**
 * Twelve crawlers, real stores and the policy of every day: one says of ten chosen subnets that it is beside them. What a round
 * costs more by its second witnesses, and how much of it there is over thousands of rounds, is in test/bench/results/trust.md.
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

interface Place {
  readonly x: number;
  readonly y: number;
}

/** Four towns of three crawlers each, in ms; the first crawler of the first town lies. */
const towns: readonly Place[] = [
  { x: 0, y: 0 },
  { x: 90, y: 0 },
  { x: 0, y: 110 },
  { x: 120, y: 100 },
];
const beside = (town: number, number: number): Place => ({
  x: towns[town]!.x + 3 * number,
  y: towns[town]!.y + 2 * number,
});
const crawlerPlaces = Array.from({ length: 12 }, (_, at) => beside(Math.floor(at / 3), at % 3));
const apartMs = (a: Place, b: Place) => 2 + Math.hypot(a.x - b.x, a.y - b.y);
const distances = crawlerPlaces.map((a) => crawlerPlaces.map((b) => apartMs(a, b)));

const world = flowWorld();
let crawlers: readonly CrawlerId[];
let state: CoordinatorState;

let subnets: readonly SubnetId[];

beforeEach(async () => {
  const [arrived, sites]: [CrawlerId[], SubnetId[]] = [[], []];
  for (let at = 0; at < 12; at += 1) arrived.push(await world.arrived(`crawler-${at}`));
  for (let number = 1; number <= 10; number += 1) sites.push(await world.site(number));
  [crawlers, subnets] = [arrived, sites];
  state = await world.state();
});

const siteAt = (number: number): Place => beside(1 + (number % 3), 1);

/** Subnets 1 to 10 by turns near the three other towns: what each crawler measures, and what the first one says. */
async function rounds(says: (rttMs: number) => number, hasWitnesses = true) {
  const random = seededRandom(7);
  const answersTo = (place: Place) =>
    new Map(
      crawlers.map((id, at) => {
        const rttMs = apartMs(place, crawlerPlaces[at]!);
        return [id, at === 0 ? says(rttMs) : rttMs] as const;
      }),
    );
  const table = subnets.map((_, at) => [`5.1.${at + 1}.7`, answersTo(siteAt(at + 1))] as const);
  const fleet = new TableFleet(crawlers, Object.fromEntries(table));
  const settings = { ...nearestRound, hasWitnesses };
  const finished: FinishedRound[] = [];
  for (const subnetId of subnets) {
    const round = await runRound(world, subnetId, { state, fleet, settings, random });
    if (round !== null) finished.push(round);
  }
  const won = finished.filter(({ crawlerId }) => crawlerId === crawlers[0]);
  return { finished, won, fleet, settings, probes: fleet.asked.length };
}

describe("a crawler that says of chosen subnets that it is beside them", () => {
  it("wins all of them where its word is taken", async () => {
    learnDistances(state, crawlers, distances);

    expect((await rounds(() => 3, false)).won).toHaveLength(10);
  });

  it("wins one of ten at most in one round each, is not accused, and the reason says what it reported", async () => {
    learnDistances(state, crawlers, distances);
    const { finished, won } = await rounds(() => 3);

    expect(finished).toHaveLength(10);
    expect(won.length).toBeLessThanOrEqual(1);
    const words = finished.map(({ reason }) => explainReason(reason, (id) => `crawler ${id}`));
    expect(words.join(" ")).toMatch(/crawler \d+ [\d.]+ ms \(it said 3 ms, which others contradict\)/);
    const { rows } = await world.pool.query("select from crawler_trust where probes_doubted_at is not null");
    expect(rows).toEqual([]);
  });

  it("gains nothing by stating that the others are beside it", async () => {
    learnDistances(state, crawlers, [crawlerPlaces.map(() => 1), ...distances.slice(1)]);

    expect((await rounds(() => 3)).won).toEqual([]);
  });

  it("does not keep those that it has, when they are checked", async () => {
    learnDistances(state, crawlers, distances);
    const { won, fleet, settings } = await rounds(() => 3, false);
    const checked: unknown[] = [];
    for (const { subnetId } of won) {
      const witnessed = { ...settings, hasWitnesses: true };
      const round = await runRound(world, subnetId, { state, fleet, settings: witnessed, cause: "refresh" });
      checked.push(round?.crawlerId);
    }

    expect(checked).toHaveLength(10);
    expect(checked).not.toContain(crawlers[0]);
  });
});

describe("honest crawlers", () => {
  it("get what they are nearest to", async () => {
    learnDistances(state, crawlers, distances);
    const { finished } = await rounds((rttMs) => rttMs);

    expect(finished.filter(({ rttMs }) => rttMs === null || rttMs > 12)).toEqual([]);
  });

  it("are believed where nobody knows how far they are from each other", async () => {
    const { finished } = await rounds((rttMs) => rttMs);

    expect(finished.filter(({ measured }) => measured)).toHaveLength(10);
  });

  it("lose nothing to a single witness who lies, where another is beside them", () => {
    learnDistances(state, crawlers, distances);
    const [winner, liar, neighbour] = crawlers as [CrawlerId, CrawlerId, CrawlerId];
    const won = {
      winner: { crawlerId: winner, rttMs: 4 },
      others: [{ crawlerId: liar, rttMs: 400 }],
      fleet: state.fleetOf(crawlers),
      looks: 1,
      draw: 0,
      mayAsk: (id: CrawlerId) => id === neighbour || id > neighbour,
      nextWithoutIt: () => null,
    };
    const step = judgeWin(won);
    expect(step.type).toBe("ask");
    const heard = [...won.others, { crawlerId: neighbour, rttMs: 8 }];
    expect(judgeWin({ ...won, looks: 4 }).type).toBe("counts-as");
    expect(judgeWin({ ...won, others: heard, looks: 4 }).type).toBe("believed");
  });
});
