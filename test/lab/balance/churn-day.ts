/**
 * A day of a fleet that comes and goes: every hour some crawlers leave and some that left are back, and each region's load
 * follows its own clock. Every hour is planned and the moves are made. Shows whether subnets flap: move away from a crawler
 * and back to it within the day although it was there all the time.
 */
import type { BalanceSettings } from "#coordinator/balance/plan";
import { BalancePlanner } from "#coordinator/balance/planner";
import type { CrawlerId, SubnetId } from "#core/ids";
import { seededRandom } from "#core/random";
import { type Plane, seconds } from "./plane.ts";

const hours = 24;
/** Share of the fleet that leaves in an hour. */
const leaving = 0.01;
/** Share of those away that is back an hour later. */
const returning = 1 / 3;
/** A region's load goes up and down by so much in a day, with the time zone of its crawlers. */
const tide = 0.25;
/** A subnet's own noise from hour to hour (of the logarithm). */
const noise = 0.1;

interface ChurnDay {
  /** Of the first plan, which puts right what delegation left. */
  readonly firstMoves: number;
  /** Of all later hours. */
  readonly moves: number;
  /** Of these, because the crawler left. */
  readonly evacuated: number;
  /** Back to a crawler that had been away. */
  readonly home: number;
  /** Back to a crawler that was there all the time. */
  readonly flaps: number;
  /** The most that one subnet moved. */
  readonly mostMoves: number;
  /** Mean over all pages of what they are further away than at the start, in ms, by the true RTTs. */
  readonly addedMs: number;
  /** Crawlers over capacity after a plan, summed over the hours. */
  readonly overloads: number;
  /** CPU seconds of an hour: taking in what changed, and planning. */
  readonly planSeconds: readonly number[];
  readonly noteSeconds: readonly number[];
}

export function churnDay(
  world: Plane,
  { settings, seed, reported = 1 }: { settings: BalanceSettings; seed: number; reported?: number },
): ChurnDay {
  const random = seededRandom(seed);
  const planner = new BalancePlanner(world.crawlerRttMs, settings);
  planner.note(world);
  const placeOf = new Map<SubnetId, CrawlerId>(
    world.subnets.map(({ subnetId, crawlerId }) => [subnetId, crawlerId]),
  );
  const loadOf = new Map<SubnetId, number>(
    world.subnets.map(({ subnetId, loadPagesPerDay }) => [subnetId, loadPagesPerDay]),
  );
  /** By subnet those it left, with the hour. */
  const left = new Map<SubnetId, Map<CrawlerId, number>>();
  /** When a crawler was last away; never: not in it. */
  const lastAway = new Map<CrawlerId, number>();
  const movesOf = new Map<SubnetId, number>();
  const phase = world.crawlers.map(() => 2 * Math.PI * random());
  const away = new Set<CrawlerId>();
  const day = { firstMoves: 0, moves: 0, evacuated: 0, home: 0, flaps: 0, added: 0, pages: 0, overloads: 0 };
  const [planSeconds, noteSeconds]: [number[], number[]] = [[], []];
  for (let hour = 0; hour <= hours; hour++) {
    if (hour > 0) {
      for (const crawlerId of [...away]) if (random() < returning) away.delete(crawlerId);
      for (const { crawlerId } of world.crawlers) if (random() < leaving) away.add(crawlerId);
    }
    for (const crawlerId of away) lastAway.set(crawlerId, hour);
    const loads = world.subnets
      .filter(() => hour === 0 || reported === 1 || random() < reported)
      .map(({ subnetId, crawlerId, loadPagesPerDay }) => ({
        subnetId,
        loadPagesPerDay:
          loadPagesPerDay *
          (1 + tide * Math.sin((2 * Math.PI * hour) / hours + phase[crawlerId - 1]!)) *
          Math.exp(noise * normal(random)),
      }));
    for (const { subnetId, loadPagesPerDay } of loads) loadOf.set(subnetId, loadPagesPerDay);
    const crawlers = world.crawlers.map((crawler) =>
      away.has(crawler.crawlerId) ? { ...crawler, capacityPagesPerDay: 0 } : crawler,
    );
    const noting = seconds(() => planner.note({ crawlers, loads }));
    let moves: ReturnType<BalancePlanner["plan"]>["moves"] = [];
    const planning = seconds(() => {
      moves = planner.plan().moves;
    });
    const making = seconds(() => planner.note({ made: moves }));
    if (hour === 0) day.firstMoves = moves.length;
    else {
      planSeconds.push(planning);
      noteSeconds.push(noting + making);
      day.moves += moves.length;
    }
    for (const { subnetId, from, to } of moves) {
      placeOf.set(subnetId, to);
      if (hour === 0) continue;
      movesOf.set(subnetId, (movesOf.get(subnetId) ?? 0) + 1);
      if (away.has(from)) day.evacuated++;
      const leftAt = left.get(subnetId)?.get(to);
      if (leftAt !== undefined && (lastAway.get(to) ?? -1) >= leftAt) day.home++;
      else if (leftAt !== undefined) day.flaps++;
      left.set(subnetId, (left.get(subnetId) ?? new Map<CrawlerId, number>()).set(from, hour));
    }
    const carried = new Float64Array(world.crawlers.length);
    for (const { subnetId, crawlerId } of world.subnets) {
      const place = placeOf.get(subnetId)!;
      const pages = loadOf.get(subnetId)!;
      carried[place - 1]! += pages;
      day.pages += pages;
      if (place !== crawlerId)
        day.added += pages * (world.rttMs(subnetId, place) - world.rttMs(subnetId, crawlerId));
    }
    day.overloads += crawlers.filter(
      ({ crawlerId, capacityPagesPerDay }) => carried[crawlerId - 1]! > capacityPagesPerDay * (1 + 1e-9),
    ).length;
  }
  const { added, pages, ...counts } = day;
  return {
    ...counts,
    mostMoves: [...movesOf.values()].reduce((most, count) => Math.max(most, count), 0),
    addedMs: added / pages,
    planSeconds,
    noteSeconds,
  };
}

/** Normally distributed (Box and Muller). */
function normal(random: () => number): number {
  return Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
}
