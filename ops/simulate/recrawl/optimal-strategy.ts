/**
 * Recrawl rates that make weighted freshness greatest under the capacity that the fleet shows (core/recrawl/
 * optimal-rates.ts): what is shared out is not fetches but task threads, since a channel of 100,000 pages takes one
 * for a day and a channel of 100 for a minute.
 *
 * A download of d minutes survives its crawler's departures with e^(-h·d), h being how often a crawler leaves
 * without notice; an update therefore takes (e^(hd) - 1)/h thread minutes on average, lost attempts included, and
 * e^(hd) attempts. Freshness depends on the ratio of updates to changes alone, so that rates of thread minutes take the
 * place of rates of updates where each channel's change rate is multiplied with its cost. Importance is 2^rank,
 * times the share of pages that are still current when a download ends. Politeness: one task of a channel at a time.
 */
import { optimalRates } from "#coordinator/recrawl/optimal-rates";
import { currentShare } from "./channel-manager.ts";
import { weightOf } from "./scenario.ts";
import type { StrategyParts } from "./strategies.ts";

/** Steps from one look at the fleet to the next. */
const everySteps = 500;
/** Share of the threads that is planned for: beyond, tasks wait in queues of crawlers that happen to be full. */
const plannedShare = 0.95;
/** A download that ends once in so many attempts is not tried. */
const mostAttempts = 20;

export class OptimalStrategy {
  readonly #parts: StrategyParts;
  #seen = { crawlerSteps: 0, unnotified: 0, step: 0 };

  constructor(parts: StrategyParts) {
    this.#parts = parts;
  }

  afterStep(step: number): boolean {
    if (step === 0 || step % everySteps !== 0) return false;
    const { manager, random } = this.#parts;
    const intervals = this.#intervals(step);
    manager.reassign((channel) => intervals[channel]!, step, random);
    return true;
  }

  #intervals(step: number): Float64Array {
    const { scenario, world } = this.#parts;
    const { changeMinutes } = scenario;
    const { threads, hazard } = this.#measured(step);
    const minutes = this.#downloadMinutes();
    const attempts = minutes.map((taken) => Math.exp(hazard * taken));
    const cost = minutes.map((taken) => (hazard > 0 ? Math.expm1(hazard * taken) / hazard : taken));
    const theta = (channel: number) => changeMinutes[world.group[channel]!]!;
    const busy = optimalRates(
      {
        changesPerDay: cost.map((minutesEach, channel) => Math.min(1e300, minutesEach / theta(channel))),
        importance: minutes.map((taken, channel) =>
          attempts[channel]! > mostAttempts
            ? 0
            : weightOf(world.group[channel]!, changeMinutes.length) * currentShare(taken / theta(channel)),
        ),
        mostPerDay: cost.map(
          (minutesEach, channel) => minutesEach / (minutes[channel]! * attempts[channel]!),
        ),
      },
      plannedShare * threads,
    );
    return busy.map((share, channel) => cost[channel]! / (share * attempts[channel]!));
  }

  /** Mean threads since the last look, and departures without notice per crawler and step since the start. */
  #measured(step: number): { readonly threads: number; readonly hazard: number } {
    const { crawlerSteps, unnotified } = this.#parts.fleet;
    const online = (crawlerSteps - this.#seen.crawlerSteps) / (step - this.#seen.step);
    this.#seen = { crawlerSteps, unnotified, step };
    return {
      threads: Math.max(1, online) * this.#parts.scenario.threads,
      hazard: unnotified / Math.max(1, crawlerSteps),
    };
  }

  /** Of a channel with updates their mean; of others, pages (known from earlier crawls) times the fleet's mean per page. */
  #downloadMinutes(): Float64Array {
    const { manager, world } = this.#parts;
    let taken = 0;
    let pages = 0;
    manager.updates.forEach((count, channel) => {
      taken += manager.downloadSteps[channel]!;
      pages += count * world.pages[channel]!;
    });
    const perPage = pages > 0 ? taken / pages : 1 / 60;
    return world.pages.map((count, channel) =>
      manager.updates[channel]! > 0
        ? manager.downloadSteps[channel]! / manager.updates[channel]!
        : Math.max(1, count * perPage),
    );
  }
}
