/**
 * Fetches pages twice. A share of the pages that a crawler sent, chosen after they arrived, is soon leased to another
 * crawler like any other page, and the results are compared. If they differ, more crawlers are asked until it is
 * clear why (arbitration.ts). Nothing of this enters the index. This wraps the stores of results and of the frontier,
 * which do not know about it: results under a comparison's lease are taken out before the others are stored, and
 * leases for comparisons are handed out with the others.
 */
import { asSubnetId, type CrawlerId } from "#core/ids";
import type { IncidentNotes } from "#core/incidents";
import type { Log } from "#core/log";
import type { Lease } from "#protocol/lease";
import type { FetchResult } from "#protocol/result";
import type { DeniedTargets } from "../../place/delegation/denied-targets.ts";
import type { CoordinatorState } from "../../place/delegation/state.ts";
import type { ArrivedResult, TakenResults } from "../batch/accepted-result.ts";
import type { FrontierStore } from "../frontier/frontier-store.ts";
import type { ResultStore } from "../results/result-store.ts";
import { type Asked, nextStep } from "./arbitration.ts";
import {
  type ArrivedOpinion,
  type CheckOutcome,
  type CheckStep,
  type CheckTarget,
  type Evidence,
  evidenceOf,
  honestRates,
  isUnproven,
  type NewCheck,
  type OpenCheck,
  type TrustHistory,
  type TrustRule,
} from "./evidence.ts";
import {
  type PageSketch,
  type SamplingRule,
  samplingShare,
  saysNothing,
  sketchOfResult,
} from "./page-sketch.ts";
import type { TrustStore } from "./trust-store.ts";

export interface DoubleCheckPorts {
  readonly trust: TrustStore;
  readonly results: ResultStore;
  readonly frontier: FrontierStore;
  readonly state: CoordinatorState;
  readonly online: () => readonly CrawlerId[];
  readonly denied: () => DeniedTargets | null;
  /** The release that each crawler runs, since another release may read a page differently. Null if it is not one of ours. */
  readonly versionOf: (crawlerId: CrawlerId) => string | null;
  /** Returns an unpredictable number, uniform in [0, 1). */
  readonly random: () => number;
  /** Called with a crawler that may get a comparison if it asks for work. */
  readonly onAsked: (crawlerId: CrawlerId) => void;
  readonly onDecided: (check: OpenCheck, step: Extract<CheckStep, { type: "verdict" }>) => Promise<void>;
}

interface DoubleCheckSettings {
  readonly sampling: SamplingRule;
  /** Time limit for each further fetch, counted from the one before it. */
  readonly slotMs: number;
}

/** How many crawlers may give the next opinion. The first of them to ask for work gets the comparison. */
const askedAtOnce = 3;
/** Share of the comparisons possible within one version that may nevertheless go to any version. */
const acrossVersionsShare = 0.25;
const checksPerRequest = 2;
const samplesPerBatch = 20;

export class DoubleChecks {
  readonly #ports: DoubleCheckPorts;
  readonly #settings: DoubleCheckSettings;

  constructor(ports: DoubleCheckPorts, settings: DoubleCheckSettings) {
    this.#ports = ports;
    this.#settings = settings;
  }

  /** The result store, which takes comparisons out of the results and starts new ones. */
  get results(): ResultStore {
    return { ...this.#ports.results, take: async (batch) => await this.#take(batch) };
  }

  /** The frontier, whose leases may include comparisons. */
  get frontier(): FrontierStore {
    return { ...this.#ports.frontier, leaseHosts: async (request) => await this.#lease(request) };
  }

  /** Compares other pages that the crawler fetched from a host on which it stood alone. */
  async followUp(check: OpenCheck, most: number, now: Date): Promise<void> {
    const { trust } = this.#ports;
    const { hostHash } = check.key;
    const since = new Date(now.getTime() - followUpMs);
    const pages = await trust.recentPages({ crawlerId: check.crawlerId, hostHash, since }, most);
    const checks = pages.map(({ key, fetchedAt }) => ({
      ...this.#newCheck({ key, fetchedAt, sketch: null }, check.crawlerId, check.target, now),
      cause: "follow-up" as const,
    }));
    await this.#open(check.crawlerId, checks);
  }

  /** Handles crawlers that were asked for their page again and stayed silent. Returns how many. */
  async takeSilences(now: Date): Promise<number> {
    const { trust, onDecided } = this.#ports;
    const taken = await trust.takeSilences((check) => this.#stepOf(check, now), now);
    for (const { check, step } of taken) {
      if (step.type === "verdict") await onDecided(check, step);
      else this.#tell(step.wanted);
    }
    return taken.length;
  }

  async #take(batch: Parameters<ResultStore["take"]>[0]): Promise<TakenResults> {
    const { trust, results } = this.#ports;
    const { crawlerId, now } = batch;
    const leases = await trust.leasesOfChecks(batch.results.map(({ leaseId }) => leaseId));
    const ofChecks = batch.results.filter(({ leaseId }) => leases.has(leaseId));
    for (const arrived of ofChecks) await this.#takeOpinion(crawlerId, arrived, now);
    const others = batch.results.filter(({ leaseId }) => !leases.has(leaseId));
    const taken = await results.take({ ...batch, results: others });
    if (taken.stored > 0) await this.#sample(crawlerId, others, taken, now);
    return ofChecks.length === 0 ? taken : { ...taken, checked: ofChecks.map(({ sequence }) => sequence) };
  }

  async #lease(request: Parameters<FrontierStore["leaseHosts"]>[0]): Promise<Lease[]> {
    const { trust, frontier } = this.#ports;
    const hosts = Math.min(checksPerRequest, request.hosts);
    const checks = await trust.lease({ ...request, hosts });
    const left = request.hosts - checks.length;
    const others = left > 0 ? await frontier.leaseHosts({ ...request, hosts: left }) : [];
    // Inserts at random positions, since a fixed position would reveal comparisons.
    return checks.reduce((leases, lease) => {
      const at = Math.floor(this.#ports.random() * (leases.length + 1));
      return leases.toSpliced(at, 0, lease);
    }, others);
  }

  async #takeOpinion(crawlerId: CrawlerId, arrived: ArrivedResult, now: Date): Promise<void> {
    const opinion = opinionOf(crawlerId, arrived, now);
    const taken = await this.#ports.trust.takeOpinion(opinion, (check) => this.#stepOf(check, now), now);
    if (taken?.step.type === "verdict") await this.#ports.onDecided(taken.check, taken.step);
    else if (taken) this.#tell(taken.step.wanted);
  }

  #stepOf(check: OpenCheck, now: Date): CheckStep {
    const { opinions, host, target, isErrorPage } = check;
    const asked = opinions.map(({ crawlerId }) => crawlerId);
    const open = this.#mayFetch(target, check.key.host, now).filter(
      (crawlerId) => !asked.includes(crawlerId),
    );
    const step = nextStep({ opinions, volatility: host.volatility, others: open.length, isErrorPage });
    if (step.type === "verdict") return step;
    const wanted = this.#wanted(step.asked, open);
    return { type: "ask", wanted, nextBy: new Date(now.getTime() + this.#settings.slotMs) };
  }

  async #sample(
    crawlerId: CrawlerId,
    results: readonly ArrivedResult[],
    taken: TakenResults,
    now: Date,
  ): Promise<void> {
    const { trust, random } = this.#ports;
    const crawler = await trust.countPages(crawlerId, taken.stored);
    const share = samplingShare(crawler, this.#settings.sampling);
    const drawn = results.filter(() => random() < share).slice(0, samplesPerBatch);
    if (drawn.length === 0) return;
    const hosts = drawn.map(({ key }) => key.hostHash);
    const [silent, targets] = [await trust.silentHosts(hosts), await trust.targets(hosts)];
    const checks = drawn.flatMap((arrived) => {
      const target = targets.get(arrived.key.hostHash);
      const sketch = sketchOfResult(arrived.result, arrived.links);
      if (target === undefined || silent.has(arrived.key.hostHash) || sketch?.kind === "none") return [];
      const page = { key: arrived.key, fetchedAt: fetchedAtOf(arrived.result, now), sketch };
      return [{ ...this.#newCheck(page, crawlerId, target, now), cause: "sample" as const }];
    });
    await this.#open(crawlerId, checks);
  }

  async #open(crawlerId: CrawlerId, checks: readonly NewCheck[]): Promise<void> {
    if (checks.length === 0) return;
    await this.#ports.trust.open(crawlerId, checks);
    for (const { wanted } of checks) this.#tell(wanted);
  }

  #tell(wanted: readonly CrawlerId[]): void {
    for (const crawlerId of wanted) this.#ports.onAsked(crawlerId);
  }

  #newCheck(
    page: { readonly key: NewCheck["key"]; readonly fetchedAt: Date; readonly sketch: PageSketch | null },
    crawlerId: CrawlerId,
    target: CheckTarget,
    now: Date,
  ): Omit<NewCheck, "cause"> {
    const open = this.#mayFetch(target, page.key.host, now).filter((other) => other !== crawlerId);
    const version = this.#ports.versionOf(crawlerId);
    const alike = version === null ? [] : open.filter((other) => this.#ports.versionOf(other) === version);
    // Sometimes picks another version: otherwise colluding crawlers could all state one old release and be compared
    // only with each other.
    const staysAlike =
      alike.length > 0 && (alike.length === open.length || this.#ports.random() >= acrossVersionsShare);
    const wanted = this.#wanted({ type: "anybody" }, staysAlike ? alike : open);
    return { ...page, wanted, nextBy: new Date(now.getTime() + this.#settings.slotMs) };
  }

  /** Returns connected, trusted crawlers whose partners allow the target. */
  #mayFetch(target: CheckTarget, host: string, now: Date): CrawlerId[] {
    const { state, online, denied } = this.#ports;
    return online().filter((crawlerId) => {
      const crawler = state.crawler(crawlerId);
      if (crawler === null || crawler.drainingSince !== null || crawler.distrustedSince) return false;
      const asked = { subnetId: asSubnetId(target.subnetId), host, address: target.address };
      return !(denied()?.denies(crawlerId, asked, now.getTime()) ?? false);
    });
  }

  #wanted(asked: Asked, open: readonly CrawlerId[]): CrawlerId[] {
    if (asked.type === "again") return [asked.crawlerId];
    const { state, random } = this.#ports;
    const drawn = open.map((crawlerId) => ({ crawlerId, order: random() }));
    if (asked.type === "near") {
      for (const one of drawn)
        one.order = state.peerRtts.rttMs(asked.to, one.crawlerId) ?? Number.POSITIVE_INFINITY;
    }
    const most = asked.type === "near" ? nearAtOnce : askedAtOnce;
    return drawn
      .toSorted((a, b) => a.order - b.order)
      .slice(0, most)
      .map(({ crawlerId }) => crawlerId);
  }
}

const nearAtOnce = 2;
/** Maximum age of fetches for a follow-up. Older ones do not show whether the host's answer depends on the place. */
const followUpMs = 3_600_000;

function opinionOf(
  crawlerId: CrawlerId,
  { result, leaseId, key, links }: ArrivedResult,
  now: Date,
): ArrivedOpinion {
  const fetchedAt = fetchedAtOf(result, now);
  const overMs = Math.min(fetchedAt.getTime() + result.timing.totalMs, now.getTime());
  return {
    crawlerId,
    leaseId,
    key,
    // The crawler was sent no validator, so an answer "unchanged" (a null sketch) is no evidence.
    sketch: sketchOfResult(result, links) ?? saysNothing,
    fetchedAt,
    hostNotBefore: new Date(overMs + result.hostDelayMs),
  };
}

/** A fetch cannot be later than its arrival, but a crawler's clock may be wrong. */
const fetchedAtOf = (result: FetchResult, now: Date) =>
  new Date(Math.min(Date.parse(result.fetchedAt), now.getTime()));

/** Drops results of comparisons, which are not about the crawler's own hosts. */
export function withoutChecks<Batch extends { readonly results: readonly { readonly sequence: number }[] }>(
  batch: Batch,
  { checked }: Pick<TakenResults, "checked">,
): Batch {
  if (checked === undefined) return batch;
  return { ...batch, results: batch.results.filter(({ sequence }) => !checked.includes(sequence)) };
}

// Applies decided comparisons. A crawler that stood alone is watched more closely; one that did so too often is
// distrusted: it gets no new subnets, its own go to others, and its recent pages are fetched again. Operators are
// told, see every page of the evidence, and can restore trust.

interface JudgePorts {
  readonly trust: TrustStore;
  readonly state: CoordinatorState;
  readonly incidents: IncidentNotes;
  /** Compares other pages of the host on which a crawler stood alone. */
  readonly followUp: (check: OpenCheck, most: number, now: Date) => Promise<void>;
  readonly log: Log;
  readonly now: () => Date;
}

interface JudgeSettings {
  readonly rule: TrustRule;
  readonly watchedPages: number;
  /** `drain` hands its subnets to others. `keep` leaves them with it. */
  readonly onDistrust: "drain" | "keep";
  /** Maximum number of its latest pages that are fetched again. */
  readonly refetchPages: number;
}

/** Number of days for which comparisons count. */
export const evidenceDays = 30;

/** Maximum other pages of a host to compare after a crawler stood alone on one. */
const followUps = 3;

export async function judgeCheck(
  check: OpenCheck,
  { verdict }: Extract<CheckStep, { type: "verdict" }>,
  ports: JudgePorts,
  settings: JudgeSettings,
): Promise<void> {
  const now = ports.now();
  if (verdict.type === "alone" || verdict.type === "once") {
    if (verdict.suspect !== check.crawlerId) return;
    const isFirstHere = !check.host.suspects.includes(verdict.suspect);
    if (isFirstHere) await ports.followUp(check, followUps, now);
    return await weigh(verdict.suspect, ports, settings, now);
  }
  if (verdict.type === "cannot-tell") return await watchUnproven(check.crawlerId, ports, settings, now);
  // Agreeing pages are needed before differing pages of the same host count.
  if (verdict.type === "agree" && check.cause === "follow-up") {
    await weigh(check.crawlerId, ports, settings, now);
  }
}

async function weigh(
  crawlerId: CrawlerId,
  ports: JudgePorts,
  settings: JudgeSettings,
  now: Date,
): Promise<void> {
  const { trust, log } = ports;
  const history = await trust.history(daysBefore(now, evidenceDays), now);
  if (history.distrusted.has(crawlerId)) return;
  const own = history.outcomes.filter((outcome) => outcome.crawlerId === crawlerId);
  const rates = honestRates(othersOf(crawlerId, history), history.silent);
  const evidence = evidenceOf(own, history.silent, { rates, rule: settings.rule });
  await trust.setScore(crawlerId, evidence.score, settings.watchedPages);
  if (evidence.score > 0)
    log.info({ crawlerId, score: evidence.score }, "a crawler stands alone with its pages");
  if (evidence.score >= settings.rule.threshold)
    await distrust(crawlerId, { evidence, own }, ports, settings);
}

/** If too many comparisons are inconclusive, compares more of the crawler's pages until enough are conclusive. */
async function watchUnproven(
  crawlerId: CrawlerId,
  { trust, log }: JudgePorts,
  { watchedPages }: JudgeSettings,
  now: Date,
): Promise<void> {
  const checks = await trust.untold(crawlerId, daysBefore(now, evidenceDays));
  if (!isUnproven(checks)) return;
  await trust.watch(crawlerId, watchedPages);
  log.info({ crawlerId, ...checks }, "too many comparisons of a crawler's pages come to nothing");
}

function othersOf(crawlerId: CrawlerId, { outcomes, distrusted }: TrustHistory): CheckOutcome[][] {
  const histories = new Map<CrawlerId, CheckOutcome[]>();
  for (const outcome of outcomes) {
    if (outcome.crawlerId === crawlerId || distrusted.has(outcome.crawlerId)) continue;
    const history = histories.get(outcome.crawlerId) ?? [];
    history.push(outcome);
    histories.set(outcome.crawlerId, history);
  }
  return [...histories.values()];
}

async function distrust(
  crawlerId: CrawlerId,
  found: { readonly evidence: Evidence; readonly own: readonly CheckOutcome[] },
  ports: JudgePorts,
  settings: JudgeSettings,
): Promise<void> {
  const { trust, state, incidents, log, now } = ports;
  const words = distrustWords(found.evidence, found.own.length);
  const drain =
    settings.onDistrust === "keep"
      ? null
      : { pagesSince: daysBefore(now(), evidenceDays), mostPages: settings.refetchPages };
  const { isNew, dueAgain } = await trust.distrust({ crawlerId, words, now: now(), drain });
  if (!isNew) return;
  const crawler = state.crawler(crawlerId)?.name ?? String(crawlerId);
  log.warn({ crawlerId, crawler, dueAgain, words }, "a crawler is not trusted any more");
  incidents.note({
    crawlerId,
    kind: "wrong-result",
    words: `${words}. See nearcrawl fleet show ${crawler}`,
    remoteAddress: null,
    at: now(),
  });
}

const how = {
  alone: "its pages differed from everybody else's repeatedly",
  once: "its pages differed from everybody else's, but not when it fetched them again",
  wholly: "hardly any of its pages matched what others fetched",
} as const;

function distrustWords({ suspicion, against }: Evidence, comparisons: number): string {
  return `${how[suspicion]}: on ${against.length} hosts, in ${comparisons} comparisons`;
}

const daysBefore = (now: Date, days: number) => new Date(now.getTime() - days * 86_400_000);
