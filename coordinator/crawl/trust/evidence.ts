/**
 * Weighs all comparisons of a crawler by a sequential test (Wald 1945; as Page's CUSUM 1954, so that years of honesty
 * hide no later lie) of "some of its pages are altered" against "it is as honest as the others".
 *
 * Honest crawlers also stand alone, because sites show some networks something else and pages change between two
 * fetches. How often is learned from the other crawlers; standing alone much more often, on many hosts, is evidence. A
 * host counts once, however many of its pages differ, and in one of three ways:
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
  /** Score above which a crawler is not trusted. */
  readonly threshold: number;
}

/** Tuned on simulated fleets (test/bench/results/trust.md). */
export const defaultTrustRule: TrustRule = { alteredShare: 0.05, threshold: 8.5 };

/** How often honest crawlers stand alone per comparison; `wholly` per host. */
interface HonestRates {
  readonly alone: number;
  readonly once: number;
  readonly wholly: number;
}

export type Suspicion = "alone" | "once" | "wholly";

export interface Evidence {
  /** Log likelihood ratio of lying against honesty; at least 0. */
  readonly score: number;
  readonly suspicion: Suspicion;
  /** Index of the first comparison that counts. */
  readonly since: number;
  /** Indexes of the comparisons that count against it. */
  readonly against: readonly number[];
}

/** Inconclusive comparisons, and all others. */
export interface UntoldChecks {
  readonly untold: number;
  readonly told: number;
}

/** Fewer may be chance. */
const leastUntold = 5;

/** Honest crawlers have inconclusive comparisons too, when sites are down or releases differ. */
const untoldShare = 1 / 3;

/** True when too many comparisons are inconclusive to call it honest; that is no accusation. */
export function isUnproven({ untold, told }: UntoldChecks): boolean {
  return untold >= leastUntold && untold >= untoldShare * (untold + told);
}

/** Hosts that prove nothing: they differ by place or visit, or several crawlers stood alone on them. */
type SilentHosts = ReadonlySet<HostHash>;

/** Evidence from one crawler's comparisons, oldest first. */
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

/** Rates of all other crawlers, with pseudo-counts for small numbers. */
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

/** From the simulated web; a fleet's own rates replace them as comparisons grow. */
const priorRates = {
  alone: { mean: 0.004, weight: 500, least: 0.002, most: 0.03 },
  once: { mean: 0.006, weight: 500, least: 0.003, most: 0.03 },
  wholly: { mean: 0.05, weight: 200, least: 0.03, most: 0.2 },
} as const;

/** Share of its hosts on which a crawler that alters most pages agrees with nobody. */
const whollyOfLiar = 0.5;

const bounded = (rate: number, { least, most }: { readonly least: number; readonly most: number }) =>
  Math.min(most, Math.max(least, rate));

type HostKind = Suspicion | "clean";

/** Agreeing pages of a host needed before a differing one counts. */
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

/** Log likelihood ratios per event and per comparison without one. */
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

// What comparisons show of a host: how its pages vary, and whether differences on it prove anything.

export interface HostRecord {
  readonly agreed: number;
  readonly byVisit: number;
  readonly byPlace: number;
  /** Crawlers that stood alone on it. */
  readonly suspects: readonly CrawlerId[];
  readonly volatility: Volatility;
}

export const newHost: HostRecord = { agreed: 0, byVisit: 0, byPlace: 0, suspects: [], volatility: still };

/** Beyond this variation, comparisons of a page show nothing. */
const mostBits = 16;

const mostLinks = 40;

/** Limit of remembered suspects; two suffice to disregard a host. */
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
 * True when a difference on this host proves nothing: it differs by place or visit, or several crawlers stood alone on
 * it, who cannot all be liars.
 */
export function isSilent({ byPlace, suspects, volatility }: HostRecord): boolean {
  const { bits, links, title } = volatility;
  return byPlace > 0 || suspects.length > 1 || title || bits > mostBits || links > mostLinks;
}

/**
 * What a verdict says of the crawler that fetched the page in its own work. Crawlers asked for comparisons are not
 * judged, since no other page shows whether a foreign host answers them differently.
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

// Types of stored comparisons: pages fetched again, and the results.

export interface StoredOpinion extends Opinion {
  readonly at: string;
}

/** A page just fetched, and who may fetch it again. */
export interface NewCheck {
  readonly key: UrlKey;
  readonly cause: "sample" | "follow-up";
  /** Null when the page is as in the index. */
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
  /** Including the new one. */
  readonly opinions: readonly StoredOpinion[];
  readonly host: HostRecord;
  /** What an opinion takes for the site's error page matches another page of the host in the index. */
  readonly isErrorPage: boolean;
  /** The host's first address and subnet. */
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
  /** The host is left alone until then. */
  readonly hostNotBefore: Date;
}

export interface CheckLeaseRequest {
  readonly crawlerId: CrawlerId;
  readonly hosts: number;
  readonly urlsPerHost: number;
  readonly leaseSeconds: number;
  /** Rest of an address between two crawlers. */
  readonly addressRestSeconds?: number;
  readonly now: Date;
}

/** Recent comparisons, oldest first, and hosts whose differences prove nothing. */
export interface TrustHistory {
  readonly outcomes: readonly (CheckOutcome & { readonly at: Date })[];
  readonly silent: ReadonlySet<HostHash>;
  readonly distrusted: ReadonlySet<CrawlerId>;
}

export interface StatedSoftware {
  readonly softwareVersion: string;
  /** Set when a dock runs it. */
  readonly release?: { readonly version: string; readonly digest: string } | undefined;
}

export interface Distrust {
  readonly crawlerId: CrawlerId;
  readonly words: string;
  readonly now: Date;
  /** Drains the crawler and fetches its pages since then again, latest first, up to a limit. */
  readonly drain: { readonly pagesSince: Date; readonly mostPages: number } | null;
}
