/**
 * Weighs all comparisons of a crawler by a sequential test (Wald 1945; as Page's CUSUM 1954, so that years of honesty
 * hide no later lie) of "some of its pages are altered" against "it is as honest as the others".
 *
 * Honest crawlers also stand alone at times, because some sites answer some networks differently, and pages change
 * between two fetches. The rate is learned from the other crawlers. Standing alone much more often, on many hosts, is
 * evidence. A host counts once, however many of its pages differ, and in one of three ways:
 *
 *   alone, once   the crawler agrees with others on other pages of the host, so this page was altered
 *   wholly        it agrees with nobody on this host, which usually shows its network something else
 *   nothing       the host differs by place or by visit, or several crawlers stood alone on it
 */
import type { CrawlerId, HostHash, LeaseId } from "#core/ids";
import type { UrlKey } from "#core/url-key";
import type { Opinion, Verdict } from "./arbitration.ts";
import { type PageSketch, still, type Volatility, widest } from "./page-sketch.ts";

export interface CheckOutcome {
  readonly crawlerId: CrawlerId;
  readonly hostHash: HostHash;
  readonly outcome: "agree" | "alone" | "once";
}

export interface TrustRule {
  /** Share of altered pages that the test looks for in a liar. */
  readonly alteredShare: number;
  /** A crawler whose score is above this is not trusted. */
  readonly threshold: number;
}

/** Chosen by simulating fleets (test/bench/results/trust.md). */
export const defaultTrustRule: TrustRule = { alteredShare: 0.05, threshold: 8.5 };

/** Rates at which honest crawlers stand alone: per comparison, but `wholly` per host. */
interface HonestRates {
  readonly alone: number;
  readonly once: number;
  readonly wholly: number;
}

export type Suspicion = "alone" | "once" | "wholly";

export interface Evidence {
  /** Log likelihood ratio of lying against being honest. At least 0. */
  readonly score: number;
  readonly suspicion: Suspicion;
  /** Index of the first comparison that counts. */
  readonly since: number;
  /** Indexes of the comparisons that count against the crawler. */
  readonly against: readonly number[];
}

/** How many comparisons were inconclusive (`untold`) and conclusive (`told`). */
export interface UntoldChecks {
  readonly untold: number;
  readonly told: number;
}

/** Minimum number of inconclusive comparisons; fewer may be chance. */
const leastUntold = 5;

/** Minimum share of inconclusive comparisons. Honest crawlers have some, too, if sites are down or releases differ. */
const untoldShare = 1 / 3;

/** Whether too many comparisons are inconclusive to call the crawler honest. This is no accusation. */
export function isUnproven({ untold, told }: UntoldChecks): boolean {
  return untold >= leastUntold && untold >= untoldShare * (untold + told);
}

/** Hosts on which a difference proves nothing: their pages differ by place or by visit, or several crawlers stood alone there. */
type SilentHosts = ReadonlySet<HostHash>;

/** Weighs one crawler's comparisons, which are given oldest first. */
export function evidenceOf(
  history: readonly CheckOutcome[],
  silent: SilentHosts,
  context: { readonly rates: HonestRates; readonly rule: TrustRule },
): Evidence {
  const kindOf = hostKinds(history, silent);
  const runs = (["alone", "once", "wholly"] as const).map((suspicion) =>
    cusum(history, { kindOf, suspicion, ...context }),
  );
  return runs.reduce((most, run) => (run.score > most.score ? run : most));
}

/** Rates of all other crawlers. Pseudo-counts make up for small numbers. */
export function honestRates(
  histories: readonly (readonly CheckOutcome[])[],
  silent: SilentHosts,
): HonestRates {
  const total = { checks: 0, hosts: 0, alone: 0, once: 0, wholly: 0 };
  for (const history of histories) {
    const kindOf = hostKinds(history, silent);
    total.checks += history.length;
    total.hosts += new Set(history.map(({ hostHash }) => hostHash)).size;
    for (const kind of kindOf.values()) if (kind !== "clean") total[kind] += 1;
  }
  const { alone, once, wholly } = priorRates;
  return {
    alone: bounded((total.alone + alone.mean * alone.weight) / (total.checks + alone.weight), alone),
    once: bounded((total.once + once.mean * once.weight) / (total.checks + once.weight), once),
    wholly: bounded((total.wholly + wholly.mean * wholly.weight) / (total.hosts + wholly.weight), wholly),
  };
}

/** Rates in the simulated web. As comparisons become more, the fleet's own rates replace them. */
const priorRates = {
  alone: { mean: 0.004, weight: 500, least: 0.002, most: 0.03 },
  once: { mean: 0.006, weight: 500, least: 0.003, most: 0.03 },
  wholly: { mean: 0.05, weight: 200, least: 0.03, most: 0.2 },
} as const;

/** Share of hosts on which a crawler that alters most of its pages agrees with nobody. */
const whollyOfLiar = 0.5;

const bounded = (rate: number, { least, most }: { readonly least: number; readonly most: number }) =>
  Math.min(most, Math.max(least, rate));

type HostKind = Suspicion | "clean";

/** Minimum agreeing pages of a host for a differing page to count. */
const agreedPages = 2;

function hostKinds(history: readonly CheckOutcome[], silent: SilentHosts): ReadonlyMap<HostHash, HostKind> {
  const counts = new Map<HostHash, { agree: number; alone: number; once: number }>();
  for (const { hostHash, outcome } of history) {
    if (silent.has(hostHash)) continue;
    const count = counts.get(hostHash) ?? { agree: 0, alone: 0, once: 0 };
    count[outcome] += 1;
    counts.set(hostHash, count);
  }
  return new Map([...counts].map(([host, count]) => [host, hostKind(count)]));
}

function hostKind({ agree, alone, once }: { agree: number; alone: number; once: number }): HostKind {
  if (alone + once === 0) return "clean";
  if (agree < agreedPages) return alone > 0 ? "wholly" : "clean";
  return alone > 0 ? "alone" : "once";
}

/** Returns log likelihood ratios: one for each kind of event, and one for a comparison without any. */
function stepsOf(suspicion: Suspicion, rates: HonestRates, { alteredShare }: TrustRule) {
  const honest = rates[suspicion];
  const liar = suspicion === "wholly" ? whollyOfLiar : honest + alteredShare;
  return { event: Math.log(liar / honest), none: Math.log((1 - liar) / (1 - honest)) };
}

interface RunContext {
  readonly kindOf: ReadonlyMap<HostHash, HostKind>;
  readonly suspicion: Suspicion;
  readonly rates: HonestRates;
  readonly rule: TrustRule;
}

function cusum(history: readonly CheckOutcome[], { kindOf, suspicion, rates, rule }: RunContext): Evidence {
  const { event, none } = stepsOf(suspicion, rates, rule);
  let score = 0;
  let since = history.length;
  let against: number[] = [];
  let counted = new Set<HostHash>();
  history.forEach(({ hostHash, outcome }, at) => {
    if (!kindOf.has(hostHash)) return;
    if (outcome === "agree") score += none;
    else if (kindOf.get(hostHash) === suspicion && !counted.has(hostHash)) {
      if (score === 0) since = at;
      score += event;
      counted.add(hostHash);
      against.push(at);
    }
    if (score > 0) return;
    [score, since, against, counted] = [0, history.length, [], new Set()];
  });
  return { score, suspicion, since, against };
}

// What comparisons show about a host: how its pages vary, and whether differences on it prove anything.

export interface HostRecord {
  readonly agreed: number;
  readonly byVisit: number;
  readonly byPlace: number;
  /** Crawlers that stood alone on this host. */
  readonly suspects: readonly CrawlerId[];
  readonly volatility: Volatility;
}

export const newHost: HostRecord = { agreed: 0, byVisit: 0, byPlace: 0, suspects: [], volatility: still };

/** If a page varies by more than this, comparing it shows nothing. */
const mostBits = 16;

const mostLinks = 40;

/** Maximum suspects stored per host. Two are enough to disregard the host. */
const mostSuspects = 4;

export function withVerdict(host: HostRecord, verdict: Verdict): HostRecord {
  switch (verdict.type) {
    case "agree":
      return { ...host, agreed: host.agreed + 1 };
    case "by-visit":
      return { ...host, byVisit: host.byVisit + 1, volatility: widest(host.volatility, verdict.volatility) };
    case "by-place":
      return { ...host, byPlace: host.byPlace + 1 };
    case "alone":
    case "once":
      return { ...host, suspects: [...new Set([...host.suspects, verdict.suspect])].slice(0, mostSuspects) };
    default:
      return host;
  }
}

/**
 * Returns true if a difference on this host proves nothing: its pages differ by place or by visit, or several
 * crawlers stood alone on it, who cannot all be liars.
 */
export function isSilent({ byPlace, suspects, volatility }: HostRecord): boolean {
  const { bits, links, title } = volatility;
  return byPlace > 0 || suspects.length > 1 || title || bits > mostBits || links > mostLinks;
}

/**
 * What a verdict says about the crawler that fetched the page in its own work. Crawlers that were asked for the
 * comparison are not judged: the host is not theirs, and no other page shows whether it answers them differently.
 */
export function outcomesOf(
  verdict: Verdict,
  opinions: readonly Opinion[],
): { readonly crawlerId: CrawlerId; readonly outcome: "agree" | "alone" | "once" }[] {
  const first = opinions[0]?.crawlerId;
  if (first === undefined) return [];
  if (verdict.type === "agree") return [{ crawlerId: first, outcome: "agree" }];
  const isFirst = (verdict.type === "alone" || verdict.type === "once") && verdict.suspect === first;
  return isFirst ? [{ crawlerId: first, outcome: verdict.type }] : [];
}

// Types of stored comparisons: which pages are fetched again, and the results.

export interface StoredOpinion extends Opinion {
  readonly at: string;
}

/** A page that was just fetched, and the crawlers that may fetch it again. */
export interface NewCheck {
  readonly key: UrlKey;
  readonly cause: "sample" | "follow-up";
  /** Null if the page is the one in the index. */
  readonly sketch: PageSketch | null;
  readonly fetchedAt: Date;
  readonly wanted: readonly CrawlerId[];
  readonly nextBy: Date;
}

export interface OpenCheck {
  readonly checkId: string;
  readonly key: UrlKey;
  readonly crawlerId: CrawlerId;
  readonly cause: NewCheck["cause"];
  /** All opinions, including the new one. */
  readonly opinions: readonly StoredOpinion[];
  readonly host: HostRecord;
  /** Whether a page that an opinion takes for the site's error page matches another page of the host in the index. */
  readonly isErrorPage: boolean;
  /** The first address of the host, with its subnet. */
  readonly target: CheckTarget;
}

export interface CheckTarget {
  readonly address: string;
  readonly subnetId: number;
}

export type CheckStep =
  | { readonly type: "ask"; readonly wanted: readonly CrawlerId[]; readonly nextBy: Date }
  | { readonly type: "verdict"; readonly verdict: Verdict };

export type NextOfCheck = (check: OpenCheck) => CheckStep;

export interface TakenCheck {
  readonly check: OpenCheck;
  readonly step: CheckStep;
}

export interface ArrivedOpinion {
  readonly crawlerId: CrawlerId;
  readonly leaseId: LeaseId;
  readonly key: UrlKey;
  readonly sketch: PageSketch;
  readonly fetchedAt: Date;
  /** The host must not be contacted before this time. */
  readonly hostNotBefore: Date;
}

export interface CheckLeaseRequest {
  readonly crawlerId: CrawlerId;
  readonly hosts: number;
  readonly urlsPerHost: number;
  readonly leaseSeconds: number;
  /** How long an address rests between two crawlers. */
  readonly addressRestSeconds?: number;
  readonly now: Date;
}

/** Recent comparisons, oldest first, and the hosts on which differences prove nothing. */
export interface TrustHistory {
  readonly outcomes: readonly (CheckOutcome & { readonly at: Date })[];
  readonly silent: ReadonlySet<HostHash>;
  readonly distrusted: ReadonlySet<CrawlerId>;
}

export interface StatedSoftware {
  readonly softwareVersion: string;
  /** Set if a supervisor runs the crawler. */
  readonly release?: { readonly version: string; readonly digest: string } | undefined;
}

export interface Distrust {
  readonly crawlerId: CrawlerId;
  readonly words: string;
  readonly now: Date;
  /** Drains the crawler, and fetches its pages since `pagesSince` again, latest first, up to `mostPages`. */
  readonly drain: { readonly pagesSince: Date; readonly mostPages: number } | null;
}
