/** The pages that a simulated crawl has a copy of: when it took it, what the page did since, and what is known of that. */
import type { UrlFacts } from "#coordinator/frontier/order/strategies";
import { addSums, changesPerDay, noVisits, type VisitSums } from "#coordinator/recrawl/change-rate";
import type { OrderWeb } from "./order-web.ts";

/** A change replaces so large a part of a page's links. */
const replacedLinks = 0.1;
const daySeconds = 86_400;

interface Copy {
  readonly day: number;
  /** When the page changes next after the copy was taken. */
  readonly changesAt: number;
  readonly changeRatio: number | null;
  readonly sums: VisitSums;
}

export class VisitedPages {
  count = 0;
  readonly #web: OrderWeb;
  readonly #random: () => number;
  readonly #copies: (Copy | undefined)[];

  constructor(web: OrderWeb, random: () => number) {
    this.#web = web;
    this.#random = random;
    this.#copies = new Array(web.pages);
  }

  has(page: number): boolean {
    return this.#copies[page] !== undefined;
  }

  visit(page: number, day: number): void {
    const before = this.#copies[page];
    const { changes, next } = this.#changesUntil(page, before, day);
    if (before === undefined) this.count += 1;
    this.#copies[page] = {
      day,
      changesAt: next,
      changeRatio: before === undefined ? null : ratioAfter(changes),
      sums: before === undefined ? noVisits : addSums(before.sums, visitOf(changes > 0, day - before.day)),
    };
  }

  factsOf(
    page: number,
    day: number,
  ): Pick<UrlFacts, "outLinks" | "changeRatio" | "changesPerDay" | "ageSeconds"> {
    const copy = this.#copies[page];
    if (copy === undefined)
      return { outLinks: null, changeRatio: null, changesPerDay: null, ageSeconds: null };
    return {
      outLinks: this.#web.links[page]!.length,
      changeRatio: copy.changeRatio,
      changesPerDay: changesPerDay(copy.sums),
      ageSeconds: (day - copy.day) * daySeconds,
    };
  }

  /** Share of the copies' PageRank whose page has not changed since. */
  freshness(day: number): number {
    let [fresh, all] = [0, 0];
    for (const [page, copy] of this.#copies.entries()) {
      if (copy === undefined) continue;
      all += this.#web.ranks[page]!;
      if (copy.changesAt > day) fresh += this.#web.ranks[page]!;
    }
    return all === 0 ? 0 : fresh / all;
  }

  #changesUntil(page: number, before: Copy | undefined, day: number) {
    const gap = () => -Math.log(1 - this.#random()) / this.#web.changesPerDay[page]!;
    let next = before?.changesAt ?? day + gap();
    let changes = 0;
    for (; next <= day; next += gap()) changes += 1;
    return { changes, next };
  }
}

/** C: links kept by every change are in both of the visits, the others in one each. */
function ratioAfter(changes: number): number {
  const kept = (1 - replacedLinks) ** changes;
  return 1 - kept / (2 - kept);
}

function visitOf(hasChanged: boolean, days: number): VisitSums {
  const elapsed = days * daySeconds;
  return {
    comparedVisits: 1,
    contentChanges: hasChanged ? 1 : 0,
    changedSeconds: hasChanged ? elapsed : 0,
    unchangedSeconds: hasChanged ? 0 : elapsed,
  };
}
