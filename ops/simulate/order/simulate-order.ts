/**
 * A crawl of a generated web under one of the strategies of core/order, fetch by fetch: how soon it has what counts, and
 * how fresh what it has is. Time is counted in fetches: so many make a day. Leases are filled as the coordinator fills
 * them: slices of one host, the longest due host first, or of the whole web as one list, as a single server would.
 */

import { pageRank } from "#core/graph/page-rank";
import { type FrontierOrder, orderStrategy } from "#core/order/order-strategies";
import { isNew, scoreOf, type UrlFacts } from "#core/order/order-strategy";
import { mixLists, newSlots } from "#core/order/slice-mix";
import { seededRandom } from "#core/seeded-random";
import { graphOf, type OrderWeb } from "./order-web.ts";
import { VisitedPages } from "./visited-pages.ts";

export interface OrderRun {
  readonly web: OrderWeb;
  readonly order: FrontierOrder;
  /** `hosts`: slices of one host in turn; `whole-web`: one list for everything. */
  readonly lists: "hosts" | "whole-web";
  readonly seed: number;
}

export interface OrderOutcome {
  /** Share of the whole web's PageRank that was fetched, after each hundredth of as many fetches as there are pages. */
  readonly mass: readonly number[];
  /** All fetches and pages fetched at least once, at the same instants. */
  readonly fetches: readonly number[];
  readonly unique: readonly number[];
  /** Of the PageRank that was fetched, the share whose copy is as the page is, when as many fetches as pages were made. */
  readonly freshness: number;
}

const sliceUrls = 20;
/** As many fetches as there are pages take a month; a page is due again after a week. */
const crawlDays = 30;
const recrawlDays = 7;
/** PageRank of what is known is computed anew after so large a part of the crawl. */
const rankEvery = 0.02;

export function simulateOrder({ web, order, lists, seed }: OrderRun): OrderOutcome {
  const crawl = new Crawl(web, order, lists, seed);
  const [mass, fetches, unique]: [number[], number[], number[]] = [[], [], []];
  for (let percent = 1; percent <= 100; percent++) {
    crawl.run(Math.round((web.pages * percent) / 100));
    mass.push(crawl.mass);
    fetches.push(crawl.fetched);
    unique.push(crawl.visited.count);
  }
  return { mass, fetches, unique, freshness: crawl.freshness() };
}

const daySeconds = 86_400;
const unknown = -1;

class Crawl {
  fetched = 0;
  mass = 0;
  readonly visited: VisitedPages;
  readonly #web: OrderWeb;
  readonly #order: FrontierOrder;
  readonly #random: () => number;
  readonly #listOf: (page: number) => number;
  /** Known pages, by list. */
  readonly #known: number[][] = [];
  /** Day from which a page is due; `unknown`: nobody has linked to it yet. */
  readonly #dueDay: Float64Array;
  readonly #depth: Uint16Array;
  readonly #backLinks: Uint32Array;
  #ranks: Float64Array | null = null;
  #rankedAt = 0;

  constructor(web: OrderWeb, order: FrontierOrder, lists: OrderRun["lists"], seed: number) {
    this.#web = web;
    this.#order = order;
    this.#random = seededRandom(seed);
    this.#listOf = lists === "hosts" ? (page) => web.hostOf[page]! : () => 0;
    this.#dueDay = new Float64Array(web.pages).fill(unknown);
    this.#depth = new Uint16Array(web.pages);
    this.#backLinks = new Uint32Array(web.pages);
    this.visited = new VisitedPages(web, this.#random);
    for (const page of web.seeds) this.#meet(page, 0);
  }

  get #day(): number {
    return (this.fetched / this.#web.pages) * crawlDays;
  }

  /** Until so many fetches were made; time in which nothing is due passes as if it had been fetched. */
  run(until: number): void {
    while (this.fetched < until) {
      const slice = this.#nextSlice(Math.min(sliceUrls, until - this.fetched));
      if (slice.length === 0) this.fetched += 1;
      for (const page of slice) this.#fetch(page);
    }
  }

  freshness(): number {
    return this.visited.freshness(this.#day);
  }

  #fetch(page: number): void {
    const isFirst = !this.visited.has(page);
    this.visited.visit(page, this.#day);
    this.fetched += 1;
    this.#dueDay[page] = this.#day + recrawlDays;
    if (!isFirst) return;
    this.mass += this.#web.ranks[page]!;
    for (const target of this.#web.links[page]!) {
      this.#backLinks[target]! += 1;
      if (this.#dueDay[target] === unknown) this.#meet(target, this.#depth[page]! + 1);
    }
  }

  #meet(page: number, depth: number): void {
    if (this.#dueDay[page] !== unknown) return;
    this.#dueDay[page] = this.#day;
    this.#depth[page] = depth;
    const list = this.#listOf(page);
    this.#known[list] ??= [];
    this.#known[list].push(page);
  }

  #nextSlice(slots: number): number[] {
    const day = this.#day;
    let due: number[] = [];
    let longestDue = Number.POSITIVE_INFINITY;
    for (const pages of this.#known) {
      const first =
        pages?.reduce((least, page) => Math.min(least, this.#dueDay[page]!), day + 1e-9) ?? day + 1;
      if (first > day || first >= longestDue) continue;
      longestDue = first;
      due = pages!;
    }
    return this.#sliceOf(
      due.filter((page) => this.#dueDay[page]! <= day),
      slots,
    );
  }

  #sliceOf(due: readonly number[], slots: number): number[] {
    this.#rankAnew();
    const strategy = orderStrategy(this.#order.name);
    const scored = due.map((page) => {
      const facts = this.#factsOf(page);
      return { page, isNew: isNew(facts), score: scoreOf(strategy, facts), dueDay: this.#dueDay[page]! };
    });
    scored.sort(
      (a, b) => b.score - a.score || a.dueDay - b.dueDay || this.#depth[a.page]! - this.#depth[b.page]!,
    );
    if (!strategy.mixesNewAndOld) return scored.slice(0, slots).map(({ page }) => page);
    const newUrls = scored.filter((one) => one.isNew);
    const oldUrls = scored.filter((one) => !one.isNew);
    const slotsForNew = newSlots(slots, this.#order.newShare, this.#random());
    return mixLists({ newUrls, oldUrls }, slots, slotsForNew).map(({ page }) => page);
  }

  #factsOf(page: number): UrlFacts {
    const day = this.#day;
    return {
      backLinks: this.#backLinks[page]!,
      pageRank: this.#ranks?.[page] ?? null,
      dueSeconds: (day - this.#dueDay[page]!) * daySeconds,
      depth: this.#depth[page]!,
      ...this.visited.factsOf(page, day),
    };
  }

  /** As `nearcrawl rank` would, over what is known. */
  #rankAnew(): void {
    if (this.#order.name !== "pagerank" || this.fetched < this.#rankedAt) return;
    const { links } = this.#web;
    this.#ranks = pageRank(
      graphOf(links.map((targets, page) => (this.visited.has(page) ? targets : undefined))),
    ).ranks;
    this.#rankedAt = this.fetched + Math.round(rankEvery * this.#web.pages);
  }
}
