/**
 * A fleet that crawls a simulated web while some of its pages are fetched twice, by the rules of crawl/trust alone: which
 * crawlers are accused, and after how many of their pages.
 */

import { type Asked, nextStep, type Opinion, type Verdict } from "#coordinator/crawl/trust/arbitration";
import {
  type CheckOutcome,
  defaultTrustRule,
  evidenceOf,
  type HostRecord,
  honestRates,
  isSilent,
  newHost,
  outcomesOf,
  withVerdict,
} from "#coordinator/crawl/trust/evidence";
import { defaultSamplingRule, type PageSketch, samplingShare } from "#coordinator/crawl/trust/page-sketch";
import { asCrawlerId, type CrawlerId, type HostHash } from "#core/ids";
import { seededRandom } from "#core/random";
import {
  drawHost,
  empty,
  type SimulatedHost,
  type Visitor,
  viewOf,
  whole,
  withLinks,
} from "./simulated-web.ts";

interface Liar {
  readonly crawler: number;
  /** It adds links to a twentieth of its pages, or says that they are gone. */
  readonly lie: "spam" | "missing";
  /** Whether the same pages are altered each time; otherwise each fetch is drawn again. */
  readonly steady: boolean;
  /** Asked for a page of its own once more, it has no answer. */
  readonly silent?: boolean;
}

interface FleetSettings {
  readonly seed: number;
  readonly crawlers: number;
  readonly pagesEach: number;
  readonly hostsEach: number;
  readonly liars: readonly Liar[];
}

interface FleetOutcome {
  /** The crawlers. */
  readonly accused: readonly number[];
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
}

/** Pages of a host on which a crawler stood alone that are compared as well. */
const followUps = 3;
const minutesPerPage = 0.2;
const lyingShare = 0.05;

export function simulateFleet(settings: FleetSettings): FleetOutcome {
  return new Simulation(settings).run();
}

class Simulation {
  readonly #settings: FleetSettings;
  readonly #random: () => number;
  readonly #members: readonly Member[];
  readonly #hosts = new Map<number, HostRecord>();
  readonly #silent = new Set<HostHash>();
  readonly #verdicts = new Map<Verdict["type"], number>();

  constructor(settings: FleetSettings) {
    this.#settings = settings;
    this.#random = seededRandom(settings.seed);
    this.#members = Array.from({ length: settings.crawlers }, (_, crawler) => this.#newMember(crawler));
  }

  run(): FleetOutcome {
    for (let page = 0; page < this.#settings.pagesEach; page += 1) {
      for (const member of this.#members) if (!member.accused) this.#crawl(member, page);
    }
    const accused = this.#members.filter((member) => member.accused);
    return { accused: accused.map(({ crawler }) => crawler), verdicts: this.#verdicts };
  }

  #newMember(crawler: number): Member {
    const { hostsEach, liars } = this.#settings;
    const country = Math.floor(this.#random() * 8);
    const first = this.#settings.seed * 1_000_003 + crawler * hostsEach;
    return {
      id: asCrawlerId(crawler + 1),
      crawler,
      country,
      region: country % 4,
      hosts: Array.from({ length: hostsEach }, (_, index) => drawHost(first + index, this.#random)),
      liar: liars.find((one) => one.crawler === crawler) ?? null,
      history: [],
      pages: 0,
      watchedUntilPage: 0,
      accused: false,
    };
  }

  /** Slices of 20 URLs of a host, as leases are. */
  #crawl(member: Member, at: number): void {
    const slice = Math.floor(at / 20);
    const host = member.hosts[slice % member.hosts.length]!;
    const page = (at % 20) + 20 * Math.floor(slice / member.hosts.length);
    member.pages += 1;
    if (this.#random() >= samplingShare(member, defaultSamplingRule)) return;
    this.#check(member, host, page % host.pages, at);
  }

  #check(member: Member, host: SimulatedHost, page: number, at: number): Verdict {
    const minute = 60 * 24 * 365 + at * minutesPerPage;
    const { verdict, opinions } = this.#arbitrate(member, host, page, minute);
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
    const { score } = evidenceOf(member.history, this.#silent, { rates, rule: defaultTrustRule });
    if (score > 0) member.watchedUntilPage = member.pages + defaultSamplingRule.watchedPages;
    member.accused = score >= defaultTrustRule.threshold;
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
      opinions.push({ crawlerId: member.id, version: "1", sketch });
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
    const seen = viewOf(host, page, { visitor: member, minute, random: this.#random });
    const { liar } = member;
    if (liar === null || seen.kind === "none") return seen;
    const chance = liar.steady ? seededRandom(host.id * 613 + page * 29 + 5)() : this.#random();
    if (chance >= lyingShare) return seen;
    if (liar.lie === "missing") return empty("missing");
    if (seen.kind !== "page") return seen;
    const draw = liar.steady ? seededRandom(host.id + page * 77) : this.#random;
    return withLinks(
      seen,
      Array.from({ length: 1 + Math.floor(8 * draw()) }, () => whole(draw)),
    );
  }
}

const hashOf = (host: SimulatedHost) => String(host.id) as HostHash;
