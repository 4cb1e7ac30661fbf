/**
 * A fleet that crawls a simulated web while its pages are fetched twice now and then, by the rules of core/trust
 * alone: who is accused, and after how many of its pages.
 */

import { type Asked, nextStep, type Opinion, type Verdict } from "#coordinator/trust/arbitration";
import {
  type CheckOutcome,
  defaultTrustRule,
  evidenceOf,
  type HostRecord,
  honestRates,
  isSilent,
  newHost,
  outcomesOf,
  type Suspicion,
  type TrustRule,
  withVerdict,
} from "#coordinator/trust/evidence";
import {
  defaultSamplingRule,
  type PageSketch,
  type SamplingRule,
  samplingShare,
} from "#coordinator/trust/page-sketch";
import { asCrawlerId, type CrawlerId, type HostHash } from "#core/ids";
import { seededRandom } from "#core/random";
import {
  drawHost,
  empty,
  flipped,
  type SimulatedHost,
  usualMix,
  type Visitor,
  viewOf,
  type WebMix,
  whole,
  withLinks,
} from "./simulated-web.ts";

export const lies = ["text", "links", "spam", "missing", "stale", "mixed"] as const;
export type Lie = (typeof lies)[number];

interface Liar {
  readonly crawler: number;
  readonly lie: Lie;
  readonly share: number;
  /** True: the same pages each time; else each fetch is drawn anew. */
  readonly steady: boolean;
  /** It is honest for so many pages. */
  readonly fromPage: number;
  /** Asked for a page of its own once more, it has no answer. */
  readonly silent?: boolean;
  /** It states another version than the others: one that nobody offered, or another release that was. */
  readonly states?: "made-up" | "offered";
}

interface FleetSettings {
  readonly seed: number;
  readonly crawlers: number;
  readonly pagesEach: number;
  readonly hostsEach: number;
  readonly liars: readonly Liar[];
  readonly mix?: WebMix;
  readonly rule?: TrustRule;
  /** In place of the usual one. */
  readonly sampling?: SamplingRule;
}

interface Accusation {
  readonly crawler: number;
  readonly atPage: number;
  readonly suspicion: Suspicion;
}

interface FleetOutcome {
  readonly accused: readonly Accusation[];
  readonly checks: number;
  /** The highest score that each crawler ever had. */
  readonly highest: readonly number[];
  readonly histories: readonly (readonly CheckOutcome[])[];
  /** Fetches made for comparisons, over all pages that were crawled. */
  readonly extraShare: number;
  /** Per comparison. */
  readonly verdicts: ReadonlyMap<Verdict["type"], number>;
}

interface Member extends Visitor {
  readonly id: CrawlerId;
  readonly hosts: readonly SimulatedHost[];
  readonly liar: Liar | null;
  readonly history: CheckOutcome[];
  pages: number;
  watchedUntilPage: number;
  accused: boolean;
  highest: number;
}

/** Pages of a host on which a crawler stood alone that are compared as well. */
const followUps = 3;
const minutesPerPage = 0.2;
const lieDays = 30;

export function simulateFleet(settings: FleetSettings): FleetOutcome {
  return new Simulation(settings).run();
}

class Simulation {
  readonly #settings: FleetSettings;
  readonly #random: () => number;
  readonly #members: readonly Member[];
  readonly #hosts = new Map<number, HostRecord>();
  readonly #silent = new Set<HostHash>();
  readonly #accused: Accusation[] = [];
  readonly #verdicts = new Map<Verdict["type"], number>();
  #checks = 0;
  #extra = 0;

  constructor(settings: FleetSettings) {
    this.#settings = settings;
    this.#random = seededRandom(settings.seed);
    this.#members = Array.from({ length: settings.crawlers }, (_, crawler) => this.#newMember(crawler));
  }

  run(): FleetOutcome {
    for (let page = 0; page < this.#settings.pagesEach; page += 1) {
      for (const member of this.#members) if (!member.accused) this.#crawl(member, page);
    }
    const pages = this.#members.reduce((sum, member) => sum + member.pages, 0);
    return {
      accused: this.#accused,
      checks: this.#checks,
      highest: this.#members.map(({ highest }) => highest),
      histories: this.#members.map(({ history }) => history),
      extraShare: this.#extra / pages,
      verdicts: this.#verdicts,
    };
  }

  #newMember(crawler: number): Member {
    const { hostsEach, liars, mix = usualMix } = this.#settings;
    const country = Math.floor(this.#random() * 8);
    const first = this.#settings.seed * 1_000_003 + crawler * hostsEach;
    return {
      id: asCrawlerId(crawler + 1),
      crawler,
      country,
      region: country % 4,
      hosts: Array.from({ length: hostsEach }, (_, index) => drawHost(first + index, this.#random, mix)),
      liar: liars.find((one) => one.crawler === crawler) ?? null,
      history: [],
      pages: 0,
      watchedUntilPage: 0,
      accused: false,
      highest: 0,
    };
  }

  /** Slices of 20 URLs of a host, as leases are. */
  #crawl(member: Member, at: number): void {
    const slice = Math.floor(at / 20);
    const host = member.hosts[slice % member.hosts.length]!;
    const page = (at % 20) + 20 * Math.floor(slice / member.hosts.length);
    member.pages += 1;
    if (this.#random() >= samplingShare(member, this.#settings.sampling ?? defaultSamplingRule)) return;
    this.#check(member, host, page % host.pages, at);
  }

  #check(member: Member, host: SimulatedHost, page: number, at: number): Verdict {
    const minute = 60 * 24 * 365 + at * minutesPerPage;
    const { verdict, opinions } = this.#arbitrate(member, host, page, minute);
    this.#checks += 1;
    this.#extra += opinions.length - 1;
    this.#verdicts.set(verdict.type, (this.#verdicts.get(verdict.type) ?? 0) + 1);
    const before = this.#hosts.get(host.id) ?? newHost;
    const record = withVerdict(before, verdict);
    this.#hosts.set(host.id, record);
    if (isSilent(record)) this.#silent.add(hashOf(host));
    for (const { crawlerId, outcome } of outcomesOf(verdict, opinions)) {
      this.#members[crawlerId - 1]!.history.push({ crawlerId, hostHash: hashOf(host), outcome });
    }
    if (verdict.type === "alone" || verdict.type === "once") {
      const suspect = this.#members[verdict.suspect - 1]!;
      const isFirstHere = !before.suspects.includes(suspect.id);
      if (suspect === member && isFirstHere) this.#followUp(member, host, page, at);
      this.#judge(suspect);
    }
    return verdict;
  }

  #followUp(member: Member, host: SimulatedHost, page: number, at: number): void {
    for (let next = 1; next <= Math.min(followUps, host.pages - 1); next += 1)
      this.#check(member, host, (page + next) % host.pages, at);
  }

  #judge(member: Member): void {
    if (member.accused) return;
    const others = this.#members.filter((other) => other !== member && !other.accused);
    const rates = honestRates(
      others.map(({ history }) => history),
      this.#silent,
    );
    const { rule = defaultTrustRule } = this.#settings;
    const { score, suspicion } = evidenceOf(member.history, this.#silent, { rates, rule });
    member.highest = Math.max(member.highest, score);
    if (score > 0) member.watchedUntilPage = member.pages + defaultSamplingRule.watchedPages;
    if (score < rule.threshold) return;
    member.accused = true;
    this.#accused.push({ crawler: member.crawler, atPage: member.pages, suspicion });
  }

  #arbitrate(first: Member, host: SimulatedHost, page: number, startMinute: number) {
    const { volatility } = this.#hosts.get(host.id) ?? newHost;
    const opinions: Opinion[] = [];
    let minute = startMinute;
    let asked: Asked = { type: "again", crawlerId: first.id };
    for (;;) {
      const member = this.#whom(asked, opinions);
      const isAgain = opinions.some(({ crawlerId }) => crawlerId === member.id);
      const sketch =
        isAgain && member.liar?.silent === true ? empty("none") : this.#fetch(member, host, page, minute);
      const { states } = member.liar ?? {};
      const stated =
        states === undefined ? { version: "1" } : { version: "2", isOffered: states === "offered" };
      opinions.push({ crawlerId: member.id, ...stated, sketch });
      minute += 0.2 - 3 * Math.log(1 - this.#random());
      const others = this.#members.filter(({ id }) => !opinions.some((one) => one.crawlerId === id)).length;
      const step = nextStep({ opinions, volatility, others });
      if (step.type === "verdict") return { verdict: step.verdict, opinions };
      asked = step.asked;
    }
  }

  #whom(asked: Asked, opinions: readonly Opinion[]): Member {
    if (asked.type === "again") return this.#members[asked.crawlerId - 1]!;
    const open = this.#members.filter(({ id }) => !opinions.some(({ crawlerId }) => crawlerId === id));
    const drawn = open[Math.floor(this.#random() * open.length)]!;
    if (asked.type === "anybody") return drawn;
    const beside = this.#members[asked.to - 1]!;
    return (
      open.find(({ country }) => country === beside.country) ??
      open.find(({ region }) => region === beside.region) ??
      drawn
    );
  }

  #fetch(member: Member, host: SimulatedHost, page: number, minute: number): PageSketch {
    const visit = { visitor: member, minute, random: this.#random };
    const seen = viewOf(host, page, visit);
    const { liar } = member;
    if (liar === null || member.pages < liar.fromPage || seen.kind === "none") return seen;
    const chance = liar.steady ? seededRandom(host.id * 613 + page * 29 + 5)() : this.#random();
    if (chance >= liar.share) return seen;
    if (liar.lie === "stale") return viewOf(host, page, { ...visit, minute: minute - lieDays * 1440 });
    return altered(seen, liar.lie, liar.steady ? seededRandom(host.id + page * 77) : this.#random);
  }
}

function altered(seen: PageSketch, lie: Lie, random: () => number): PageSketch {
  const drawn = Math.floor(4 * random());
  const kind = lie === "mixed" ? lies[drawn]! : lie;
  if (kind === "missing") return empty("missing");
  if (seen.kind !== "page") return seen;
  const links = Array.from({ length: 1 + Math.floor(8 * random()) }, () => whole(random));
  if (kind === "text") return flipped(seen, whole(random), 5 + Math.floor(10 * random()));
  if (kind === "spam") return withLinks(seen, links);
  const kept = seen.links.slice(links.length);
  return withLinks({ ...seen, links: kept, linkCount: kept.length }, links);
}

const hashOf = (host: SimulatedHost) => String(host.id) as HostHash;
