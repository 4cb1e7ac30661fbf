/**
 * Crawls a generated web under one of the strategies of frontier/order, fetch by fetch: how soon important pages are fetched, and how
 * fresh the copies are. Time is counted in fetches, with a fixed number per day. Leases are filled like the coordinator's: slices
 * of one host, the longest due host first or by the value of its best URL, or from one list of the whole web, as a single server
 * would. A leased host is passed over while another one is due.
 */
import {
  type FrontierOrder,
  isNew,
  orderStrategy,
  scoreOf,
  shareOf,
  type UrlFacts,
  worthShareOf,
} from "#coordinator/crawl/frontier/order/strategies";
import { pageRank } from "#coordinator/crawl/web-graph/page-rank";
import { seededRandom } from "#core/random";
import { hostWorth, mixLists, owedAfter } from "../../../frontier/order/mix-model.ts";
import { graphOf, type OrderWeb } from "./order-web.ts";

interface OrderRun {
  readonly web: OrderWeb;
  readonly order: FrontierOrder;
  /** `hosts`: slices of one host, chosen by the order; `whole-web`: one list for everything. */
  readonly lists: "hosts" | "whole-web";
  readonly seed: number;
}

export interface OrderOutcome {
  /** Share of the whole web's PageRank fetched after each hundredth of as many fetches as there are pages. */
  readonly mass: readonly number[];
  /** Fetches, and pages fetched at least once, at the same times. */
  readonly fetches: readonly number[];
  readonly unique: readonly number[];
  /** The share of the fetched PageRank whose copy is current after as many fetches as pages. */
  readonly freshness: number;
}

const sliceUrls = 20;

/** Number of slices that are fetched at the same time. */
const hostsAtOnce = 20;

/** Fetching each page once would take a month; a page is due again after a week. */
const crawlDays = 30;

const recrawlDays = 7;

/** Share of the crawl after which the PageRank of known pages is recomputed. */
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

interface DueList {
  readonly list: number;
  readonly due: readonly number[];
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
  /** Day from which a page is due; `unknown`: no known page links to it. */
  readonly #dueDay: Float64Array;
  readonly #depth: Uint16Array;
  readonly #backLinks: Uint32Array;
  /** By list: the remainder of the mix after its leases. */
  readonly #carried: number[] = [];
  #worthCarried = 0;
  /** By list; may be outdated. */
  #worths: (number | null | undefined)[] = [];
  /** The latest leased hosts. */
  #inHand: readonly number[] = [];
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

  /** Until this number of fetches; time in which nothing is due counts as if it had been used for fetches. */
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
    this.#worths[this.#listOf(page)] = undefined;
    this.mass += this.#web.ranks[page]!;
    for (const target of this.#web.links[page]!) {
      this.#backLinks[target]! += 1;
      this.#worths[this.#listOf(target)] = undefined;
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
    this.#rankAnew();
    const lists = this.#dueLists();
    const free = lists.filter(({ list }) => !this.#inHand.includes(list));
    const from = this.#nextList(free.length > 0 ? free : lists);
    if (from === null) return [];
    this.#inHand = [from.list, ...this.#inHand].slice(0, hostsAtOnce - 1);
    return this.#sliceOf(from, slots);
  }

  #dueLists(): DueList[] {
    const until = this.#day + 1e-9;
    return this.#known.flatMap((pages, list) => {
      const due = pages.filter((page) => this.#dueDay[page]! <= until);
      return due.length === 0 ? [] : [{ list, due }];
    });
  }

  /** The host that is due longest, or in its turn the most valuable, with the value of the next one. */
  #nextList(lists: readonly DueList[]): (DueList & { leastWorth: number | null }) | null {
    const { slots, carry } = shareOf(1, worthShareOf(this.#order), this.#worthCarried);
    this.#worthCarried = carry;
    const [best, next] = slots === 1 ? this.#worthiest(lists) : [];
    if (best !== undefined) return { ...best, leastWorth: next?.worth ?? null };
    const waits = lists.map((one) => ({ one, dueDay: this.#waitsSince(one) }));
    const first = waits.reduce((least, one) => (one.dueDay < least.dueDay ? one : least), waits[0]!);
    return first === undefined ? null : { ...first.one, leastWorth: null };
  }

  #worthiest(lists: readonly DueList[]): (DueList & { worth: number })[] {
    const worths = lists.flatMap((one) => {
      const worth = this.#worthOf(one.list);
      return worth === null ? [] : [{ ...one, worth }];
    });
    return worths.sort((a, b) => b.worth - a.worth).slice(0, 2);
  }

  /** New pages are due from the start, and their scores change only with a link or a new rank. */
  #worthOf(list: number): number | null {
    const kept = this.#worths[list];
    if (kept !== undefined) return kept;
    const fresh = this.#known[list]!.filter((page) => !this.visited.has(page));
    const facts = fresh.map((page) => this.#factsOf(page));
    const worth = hostWorth(orderStrategy(this.#order.name), facts);
    this.#worths[list] = worth;
    return worth;
  }

  #waitsSince({ due }: DueList): number {
    return due.reduce((least, page) => Math.min(least, this.#dueDay[page]!), Number.POSITIVE_INFINITY);
  }

  #sliceOf({ list, due, leastWorth }: DueList & { leastWorth: number | null }, slots: number): number[] {
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
    const carry = this.#carried[list] ?? 0;
    const worthy = leastWorth === null ? [] : newUrls.filter(({ score }) => score >= leastWorth);
    if (worthy.length > 0) {
      const taken = worthy.slice(0, slots);
      this.#carried[list] = owedAfter(taken.length, this.#order.newShare, carry);
      return taken.map(({ page }) => page);
    }
    const forNew = shareOf(slots, this.#order.newShare, carry);
    this.#carried[list] = forNew.carry;
    return mixLists({ newUrls, oldUrls }, slots, forNew.slots).map(({ page }) => page);
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

  /** Like `nearcrawl rank`, over the known pages. */
  #rankAnew(): void {
    if (this.#order.name !== "pagerank" || this.fetched < this.#rankedAt) return;
    const { links } = this.#web;
    this.#ranks = pageRank(
      graphOf(links.map((targets, page) => (this.visited.has(page) ? targets : undefined))),
    ).ranks;
    this.#worths = [];
    this.#rankedAt = this.fetched + Math.round(rankEvery * this.#web.pages);
  }
}

// The copies of a simulated crawl: when each was taken, how the page changed since, and what is known of that.

/** Share of a page's links that a change replaces. */
const replacedLinks = 0.1;

interface Copy {
  readonly day: number;
  /** Time of the page's first change after the copy was taken. */
  readonly changesAt: number;
  readonly changeRatio: number | null;
}

class VisitedPages {
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
    };
  }

  factsOf(page: number, day: number): Pick<UrlFacts, "outLinks" | "changeRatio" | "ageSeconds"> {
    const copy = this.#copies[page];
    if (copy === undefined) return { outLinks: null, changeRatio: null, ageSeconds: null };
    return {
      outLinks: this.#web.links[page]!.length,
      changeRatio: copy.changeRatio,
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

/** C: links that every change keeps are in both visits, the others in one each. */
function ratioAfter(changes: number): number {
  const kept = (1 - replacedLinks) ** changes;
  return 1 - kept / (2 - kept);
}
