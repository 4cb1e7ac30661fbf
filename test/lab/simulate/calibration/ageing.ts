/**
 * A year of a crawl whose subnets move: what delegations lose in between, with the same number of rounds spent in several
 * ways. Deterministic for a seed.
 *
 * A subnet belongs to a holder, the holder to an AS and a country. Networks are of four kinds; each AS is of one, and a
 * holder's own rate is its kind's times a log-normal factor. A move makes the crawler slower than the nearest by an
 * exponential number of ms, until a round finds the nearest again; another move meanwhile draws that number anew. Pages
 * are log-normal over the subnets. A share of the moves is found by fetch-time alarms, since the path became longer, after
 * so many fetches; the others (another crawler became nearer, or the path shorter) show in no fetch.
 */

import { nearlyBestMs } from "#coordinator/delegation/delegation";
import {
  type Ageing,
  AgeingTally,
  type CheckPlan,
  checkAfterDays,
  daysPerMonth,
  MoveRates,
  type RateKeys,
} from "#coordinator/delegation/recalibration/ageing";
import { seededRandom } from "#core/random";

interface NetworkKind {
  readonly name: string;
  readonly movesPerMonth: number;
  /** Of the subnets. */
  readonly share: number;
}

/** A seventh of all subnets moves in a month: "more than a tenth". */
export const usualKinds: readonly NetworkKind[] = [
  { name: "universities, authorities", movesPerMonth: 0.005, share: 0.2 },
  { name: "business lines", movesPerMonth: 0.05, share: 0.55 },
  { name: "hosting", movesPerMonth: 0.3, share: 0.15 },
  { name: "leased and pooled space", movesPerMonth: 0.8, share: 0.1 },
];

/** For one who does not know that networks differ, they should not. */
export const equalKinds: readonly NetworkKind[] = [{ name: "all alike", movesPerMonth: 0.13, share: 1 }];

const checkRules = ["none", "oldest first", "chance × loss", "price", "price, true rates"] as const;
type CheckRule = (typeof checkRules)[number];

interface AgeingOptions {
  readonly subnets: number;
  readonly days: number;
  /** Rounds a day: subnets / meanDays. */
  readonly meanDays: number;
  readonly kinds: readonly NetworkKind[];
  /** Of the moves that fetch times show. */
  readonly alarmShare: number;
  readonly seed: number;
}

interface AgeingResult {
  readonly rule: CheckRule;
  /** Over all pages of the year, and of its second half. */
  readonly meanExcessMs: number;
  readonly meanExcessMsLater: number;
  /** On average over the days, of the subnets: those whose crawler is more than 5 ms slower than the nearest, pages or not. */
  readonly farOffShare: number;
  readonly checksPerDay: number;
  /** Of the checks, those that found a move. */
  readonly foundShare: number;
}

/** Fetches until an alarm: the median in test/bench/results/calibration.md is below. */
const fetchesToAlarm = 12;
const meanLossMs = 25;
const medianPages = 20;
const subnetsPerHolder = 6;
const holdersPerAs = 12;
const countries = 40;

interface ModelSubnet {
  readonly keys: RateKeys;
  readonly perDay: number;
  readonly pagesPerDay: number;
  checkedDay: number;
  excessMs: number;
  /** The move shows in fetch times on this day. */
  alarmDay: number;
}

export function simulateAgeing(options: AgeingOptions, rule: CheckRule): AgeingResult {
  const run = new AgeingRun(options, rule);
  for (let day = 1; day <= options.days; day += 1) run.day(day);
  return run.result();
}

class AgeingRun {
  readonly #options: AgeingOptions;
  readonly #rule: CheckRule;
  /** Apart, so that all rules meet the same moves. */
  readonly #draw: () => number;
  readonly #subnets: readonly ModelSubnet[];
  readonly #rates = new MoveRates();
  #plan: CheckPlan | null = null;
  #credit = 0;
  #checks = 0;
  #found = 0;
  #pages = [0, 0];
  #lost = [0, 0];
  #farOff = 0;

  constructor(options: AgeingOptions, rule: CheckRule) {
    this.#options = options;
    this.#rule = rule;
    this.#draw = seededRandom(options.seed);
    this.#subnets = drawSubnets(options);
  }

  day(day: number): void {
    for (const subnet of this.#subnets) this.#age(subnet, day);
    for (const subnet of this.#subnets) if (subnet.alarmDay === day) this.#check(subnet, day);
    this.#credit += this.#options.subnets / this.#options.meanDays;
    const most = Math.floor(this.#credit);
    const checked = this.#due(day).slice(0, most);
    for (const subnet of checked) this.#check(subnet, day);
    this.#checks += checked.length;
    // What is not spent today may be spent within a week.
    this.#credit = Math.min(
      this.#credit - checked.length,
      (7 * this.#options.subnets) / this.#options.meanDays,
    );
    const half = 2 * day > this.#options.days ? 1 : 0;
    for (const { excessMs, pagesPerDay } of this.#subnets) {
      this.#pages[half]! += pagesPerDay;
      this.#lost[half]! += excessMs * pagesPerDay;
      if (excessMs > nearlyBestMs) this.#farOff += 1;
    }
  }

  result(): AgeingResult {
    const [early = 0, late = 0] = this.#lost;
    const [earlyPages = 0, latePages = 0] = this.#pages;
    return {
      rule: this.#rule,
      meanExcessMs: (early + late) / (earlyPages + latePages),
      meanExcessMsLater: late / latePages,
      farOffShare: this.#farOff / (this.#options.subnets * this.#options.days),
      checksPerDay: this.#checks / this.#options.days,
      foundShare: this.#checks === 0 ? 0 : this.#found / this.#checks,
    };
  }

  /** Two draws a day each, whatever happens. */
  #age(subnet: ModelSubnet, day: number): void {
    const moves = this.#draw() < 1 - Math.exp(-subnet.perDay);
    const how = this.#draw();
    if (!moves) return;
    const { alarmShare } = this.#options;
    const isSeen = how < alarmShare;
    const unit = isSeen ? how / alarmShare : (how - alarmShare) / (1 - alarmShare);
    subnet.excessMs = -meanLossMs * Math.log(1 - unit);
    subnet.alarmDay = isSeen ? day + Math.ceil(fetchesToAlarm / subnet.pagesPerDay) : 0;
  }

  #check(subnet: ModelSubnet, day: number): void {
    const moved = subnet.excessMs > 0;
    this.#rates.note(subnet.keys, { days: day - subnet.checkedDay, moved, lostMs: subnet.excessMs });
    if (moved && subnet.alarmDay !== day) this.#found += 1;
    subnet.checkedDay = day;
    subnet.excessMs = 0;
    subnet.alarmDay = 0;
  }

  /** Those to be checked today, the most urgent first. */
  #due(day: number): ModelSubnet[] {
    if (this.#rule === "none") return [];
    const byAge = (a: ModelSubnet, b: ModelSubnet) => a.checkedDay - b.checkedDay;
    if (this.#rule === "oldest first") return this.#subnets.toSorted(byAge);
    if (this.#rule === "chance × loss") {
      const worth = new Map(
        this.#subnets.map((subnet) => {
          const { perDay, lossPerDay } = this.#ageingOf(subnet);
          return [subnet, lossPerDay * (1 - Math.exp(-perDay * (day - subnet.checkedDay)))];
        }),
      );
      return this.#subnets.toSorted((a, b) => worth.get(b)! - worth.get(a)!);
    }
    if (day % 7 === 1) this.#planAnew();
    const plan = this.#plan!;
    const overdue = this.#subnets.flatMap((subnet) => {
      const days = day - subnet.checkedDay - checkAfterDays(this.#ageingOf(subnet), plan);
      return days >= 0 ? [{ subnet, days }] : [];
    });
    return overdue.sort((a, b) => b.days - a.days).map(({ subnet }) => subnet);
  }

  #planAnew(): void {
    const tally = new AgeingTally();
    for (const subnet of this.#subnets) tally.add(this.#ageingOf(subnet));
    this.#plan = tally.planFor(this.#options.meanDays);
  }

  #ageingOf({ keys, perDay, pagesPerDay }: ModelSubnet): Ageing {
    if (this.#rule === "price, true rates") return { perDay, lossPerDay: meanLossMs * pagesPerDay };
    const rate = this.#rates.rateOf(keys);
    return { perDay: rate.perMonth / daysPerMonth, lossPerDay: rate.lossMs * pagesPerDay };
  }
}

function drawSubnets({ subnets, kinds, meanDays, seed }: AgeingOptions): ModelSubnet[] {
  const draw = seededRandom(seed ^ 0x5bd1e995);
  const normal = () => Math.sqrt(-2 * Math.log(1 - draw())) * Math.cos(2 * Math.PI * draw());
  const holders = Math.ceil(subnets / subnetsPerHolder);
  const systems = Array.from({ length: Math.ceil(holders / holdersPerAs) }, () => kindAt(kinds, draw()));
  const rates = Array.from({ length: holders }, (_, holder) => {
    const { movesPerMonth } = systems[holder % systems.length]!;
    return (movesPerMonth / daysPerMonth) * Math.exp(0.6 * normal());
  });
  return Array.from({ length: subnets }, (_, index) => {
    const holder = index % holders;
    const system = holder % systems.length;
    return {
      keys: [
        ["all", 0],
        ["country", system % countries],
        ["holder", holder],
      ],
      perDay: rates[holder]!,
      pagesPerDay: medianPages * Math.exp(1.5 * normal()),
      // Delegated one after the other, as a crawl grows.
      checkedDay: -Math.floor(draw() * meanDays),
      excessMs: 0,
      alarmDay: 0,
    };
  });
}

function kindAt(kinds: readonly NetworkKind[], unit: number): NetworkKind {
  let left = unit;
  const found = kinds.find(({ share }) => {
    left -= share;
    return left < 0;
  });
  return found ?? kinds[0]!;
}
