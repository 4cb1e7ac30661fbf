/**
 * Why a round ended as it did, as a value with every figure needed to explain it, stored with the round (jsonb). Lists are
 * bounded, because a thousand crawlers would otherwise produce more reason than result. The count beside a list is always
 * complete.
 */
import { z } from "zod";
import { asCrawlerId, type CrawlerId } from "#core/ids";

export const maxNamedCrawlers = 24;

/** Maximum ruled-out crawlers named, the closest first. */
export const maxNamedRuledOut = 8;
export const maxNamedPlaces = 4;

const crawlerId = z
  .int()
  .min(1)
  .transform((value) => asCrawlerId(value));

const ms = z.number().min(0);
const count = z.int().min(0);
const share = z.number().min(0).max(1);

const askedCrawler = z.object({
  crawlerId,
  rttMs: ms.nullable(),
  failed: z.string().nullable(),
  /** The original report, if witnesses contradict it and it counts as `rttMs`. */
  reportedMs: ms.optional(),
});
const asked = { asked: z.array(askedCrawler), askedCount: count };

/** A crawler that cannot be nearer than `lowerBoundMs`: `by` measured `byRttMs`, and they are `peerRttMs` apart. */
const ruledOutCrawler = z.object({
  crawlerId,
  lowerBoundMs: ms,
  by: crawlerId,
  byRttMs: ms,
  peerRttMs: ms,
});

/** Measured, bounded by the triangle inequality, or merely the likeliest. */
const runnerUp = z.object({ crawlerId, rttMs: ms.nullable(), atMostMs: ms.nullable() }).nullable();

const decidingReasons = [
  z.object({ type: z.literal("random"), candidates: count, runnerUp }),
  z.object({ type: z.literal("only-candidate"), runnerUp }),
  /** ipmicra: all other subnets of the company belong to this crawler. Nothing was probed. */
  z.object({ type: z.literal("same-company"), subnetsOwned: count, runnerUp }),
  /** ipmicra: the first answer under the threshold, and the step of the climb at which its crawler was found. */
  z.object({
    type: z.literal("under-threshold"),
    thresholdMs: ms,
    rttMs: ms,
    level: z.enum(["company", "subnet", "ancestor", "slash8", "root"]),
    ...asked,
    runnerUp,
  }),
  /** exhaustive (`thresholdMs` is null), and ipmicra if no crawler was under the threshold. */
  z.object({ type: z.literal("fastest-of-all"), thresholdMs: ms.nullable(), rttMs: ms, ...asked, runnerUp }),
  /** nearest: no other probe was worth its cost. */
  z.object({
    type: z.literal("expected-gain"),
    stop: z.enum(["gain-below-cost", "all-ruled-out", "all-asked"]),
    rttMs: ms,
    lambdaMs: ms,
    /** λ after the discount for a new holder. */
    costMs: ms,
    /** The best remaining candidate and its expected saving. */
    next: z.object({ crawlerId, expectedGainMs: ms, lowerBoundMs: ms }).nullable(),
    certainty: share,
    ...asked,
    ruledOut: z.array(ruledOutCrawler),
    ruledOutCount: count,
    /** The published places, their sources' trust, and the number of known subnets there. */
    published: z
      .array(z.object({ source: z.string(), place: z.string(), trust: share, subnets: count }))
      .optional(),
    /** The list entry, and how many far crawlers were asked whether it answers from many places. */
    notAnycast: z.object({ place: z.string(), far: count }).optional(),
    runnerUp,
  }),
  /** No crawler answered: the likeliest by past delegations, to be tried again. */
  z.object({
    type: z.literal("by-prior"),
    share,
    ...asked,
    candidates: count,
    runnerUp,
    /** True if it stays with its former crawler. */
    kept: z.boolean().optional(),
  }),
] as const;

const delegationReason = z.discriminatedUnion("type", [
  ...decidingReasons,
  /** Anycast: load decides, because latency cannot. */
  z.object({
    type: z.literal("anycast"),
    near: z.object({ crawlerId, rttMs: ms }),
    far: z.object({ crawlerId, rttMs: ms }),
    /** Minimum sum of the two answers from a single machine. */
    leastSumMs: ms,
    by: z.enum(["light", "peer-rtt"]),
    /** A third crawler whose answer contradicts as well. */
    confirmed: z.object({ crawlerId, rttMs: ms }).nullable().default(null),
    /** The list entry: "aws eu-central-1", or without a place "cloudflare 104.16.0.0/13". */
    listed: z.string().optional(),
    /** How many crawlers answered fast. The one with the most room won. */
    fast: count.default(0),
    runnerUp: runnerUp.default(null),
  }),
  /** A check in which the challenger does not beat what is known of the owner. */
  z.object({
    type: z.literal("kept"),
    challenger: z.object({ crawlerId, rttMs: ms }),
    /** Minimum RTT that the owner may have. */
    leastMs: ms,
    /** Source: a probe of the round, an answer that a busy machine noticed late, recent fetches, or earlier measurements. */
    by: z.enum(["probe", "busy", "fetches", "before"]),
    lambdaMs: ms,
    ...asked,
    runnerUp,
  }),
  /** `needsIpv6`: no online crawler uses IPv6. */
  z.object({ type: z.literal("no-candidates"), needsIpv6: z.literal(true).optional() }),
]);

export type DelegationReason = z.output<typeof delegationReason>;
export type ReasonOf<Type extends DelegationReason["type"]> = Extract<DelegationReason, { type: Type }>;
export type AskedCrawler = z.output<typeof askedCrawler>;
export type RuledOutCrawler = z.output<typeof ruledOutCrawler>;
export type RunnerUp = z.output<typeof runnerUp>;

/** A policy's reason. The runner-up is added afterwards for all policies. */
export type Verdict = WithoutRunnerUp<z.output<(typeof decidingReasons)[number]>>;

type WithoutRunnerUp<Reason> = Reason extends unknown ? Omit<Reason, "runnerUp"> : never;

/** Parses a stored reason. Null if damaged or written by another version. */
export function parseReason(value: unknown): DelegationReason | null {
  const parsed = delegationReason.safeParse(value);
  return parsed.success ? parsed.data : null;
}

// Puts the reason for a delegation into plain words for `who`, pages and the log.

type NameOf = (crawlerId: CrawlerId) => string;

/** Maximum ruled-out crawlers explained individually. */
const explainedOneByOne = 3;

/** Sentences for readers who have never seen the code. Accepts a stored reason. */
export function explainReason(reason: unknown, nameOf: NameOf): string {
  const parsed = parseReason(reason);
  if (parsed === null) return "The reason was recorded in a form that this version does not know.";
  const hasRunnerUp = parsed.type !== "only-candidate" && parsed.type !== "no-candidates";
  const runnerUp = hasRunnerUp ? takeOver(parsed.runnerUp, nameOf) : "";
  return [...sentencesOf(parsed, nameOf), runnerUp].filter(Boolean).join(" ");
}

function sentencesOf(reason: DelegationReason, nameOf: NameOf): string[] {
  switch (reason.type) {
    case "random":
      return [`Drawn at random from ${crawlers(reason.candidates)}, without a probe.`];
    case "only-candidate":
      return ["It was the only crawler that could take the subnet, so nothing was probed."];
    case "same-company": {
      const others = `The same company's other subnets (${reason.subnetsOwned})`;
      return [`${others} belong to this crawler alone, so it takes this one too, without a probe.`];
    }
    case "under-threshold": {
      const under = `the first under the threshold of ${briefMs(reason.thresholdMs)}`;
      const answered = `It answered in ${briefMs(reason.rttMs)}, ${under}, found ${foundAt[reason.level]}.`;
      return [answered, askedWords(reason, nameOf)];
    }
    case "fastest-of-all": {
      const { thresholdMs } = reason;
      const under = thresholdMs === null ? "" : `Nobody was under the threshold of ${briefMs(thresholdMs)}.`;
      const fastest = `With ${briefMs(reason.rttMs)} it was the fastest; every crawler was asked.`;
      return [fastest, under, askedWords(reason, nameOf)];
    }
    case "expected-gain":
      return expectedGain(reason, nameOf);
    case "by-prior": {
      const likeliest = `the likeliest by past delegations nearby was taken (belief ${percent(reason.share)})`;
      const whose = reason.kept ? "it stays with the crawler that had it" : likeliest;
      return [`Nobody answered, so ${whose}. It will be tried again.`, askedWords(reason, nameOf)];
    }
    case "anycast":
      return anycast(reason, nameOf);
    case "kept": {
      const { challenger, lambdaMs } = reason;
      const stays = `It stays with the crawler that had it: ${keptBy[reason.by](briefMs(reason.leastMs))}`;
      const other = `${measured(challenger, nameOf)} is not nearer than that by ${briefMs(lambdaMs)} (λ)`;
      return [`${stays}, and ${other}.`, askedWords(reason, nameOf)];
    }
    case "no-candidates":
      return [
        reason.needsIpv6
          ? "No crawler could take the subnet: it takes IPv6, and no crawler that was online speaks it. It waits."
          : "No crawler could take the subnet: all are offline, full, leaving, or may not reach it. It waits.",
      ];
  }
}

const foundAt = {
  company: "among the crawlers that own other subnets of the same company",
  subnet: "among the crawlers that own parts of this subnet",
  ancestor: "among the crawlers that own neighbouring subnets",
  slash8: "among the crawlers that own subnets in the same /8",
  root: "among all crawlers",
} as const;

const percent = (of: number) => `${Math.round(100 * of)} %`;

const measured = ({ crawlerId, rttMs }: { crawlerId: CrawlerId; rttMs: number }, nameOf: NameOf) =>
  `${nameOf(crawlerId)} (${briefMs(rttMs)})`;

function expectedGain(reason: ReasonOf<"expected-gain">, nameOf: NameOf): string[] {
  const { published = [], notAnycast } = reason;
  const whence = published.length > 0 ? "there and nearby" : "nearby";
  const isFirst = reason.askedCount === 1;
  return [
    ...published.map(({ source, place, trust, subnets }) => {
      const others = subnets === 1 ? "one other subnet is" : `${subnets} other subnets are`;
      const said = `According to ${source} it lies in ${place} (source trusted ${percent(trust)})`;
      return `${said}; ${others} known there.`;
    }),
    isFirst
      ? `It was asked first, as the likeliest by past delegations ${whence}, and answered in ${briefMs(reason.rttMs)}.`
      : `With ${briefMs(reason.rttMs)} it was the fastest of those asked.`,
    isFirst ? "" : askedWords(reason, nameOf),
    ruledOutWords(reason, nameOf),
    stopWords(reason, nameOf),
    notAnycast === undefined ? "" : notAnycastWords(notAnycast),
  ];
}

function notAnycastWords({ place, far }: { readonly place: string; readonly far: number }): string {
  const some = far === 1 ? "one crawler far away was" : `${far} crawlers far away were`;
  const why = `Networks that publish their ranges may announce them from many places, as ${place}`;
  return `${why}; so ${some} asked, once: it is not anycast.`;
}

function stopWords({ stop, next, costMs, lambdaMs }: ReasonOf<"expected-gain">, nameOf: NameOf): string {
  if (stop === "all-asked") return "Every crawler was asked.";
  if (stop === "all-ruled-out" || next === null) return "Nobody was left who could be nearer.";
  const worth =
    costMs < lambdaMs
      ? `λ is ${briefMs(lambdaMs)}; less is asked where the answer would teach something for later`
      : "λ";
  const saved = `Asking the next best, ${nameOf(next.crawlerId)}, was expected to save ${briefMs(next.expectedGainMs)}`;
  return `${saved}, less than the ${briefMs(costMs)} that a probe must be worth (${worth}).`;
}

function anycast(reason: ReasonOf<"anycast">, nameOf: NameOf): string[] {
  const { near, far, listed, confirmed, fast } = reason;
  const limit = reason.by === "light" ? "light in glass" : "the crawlers' own distance";
  const least = `${limit} allows one machine no less than ${briefMs(reason.leastSumMs)} for both together`;
  return [
    `The range is anycast: ${measured(near, nameOf)} and ${measured(far, nameOf)} are so far apart that ${least}.`,
    listed === undefined ? "" : `Its network publishes it as ${listed}.`,
    confirmed === null ? "" : `${measured(confirmed, nameOf)} confirmed it.`,
    fast > 1
      ? `Latency cannot choose here, so of the ${fast} crawlers that answered fast the one with the most room took it.`
      : "Latency cannot choose here, so it was delegated by load.",
  ];
}

const keptBy = {
  probe: (ms: string) => `it measured ${ms} itself`,
  busy: (ms: string) =>
    `its machine was busy and noticed the answer late, which may have taken no more than ${ms}`,
  fetches: (ms: string) => `its latest fetches took no more than ${ms}`,
  before: (ms: string) => `its probe was held back, and it measured ${ms} before`,
} as const;

interface Asked {
  readonly asked: readonly AskedCrawler[];
  readonly askedCount: number;
}

function askedWords({ asked, askedCount }: Asked, nameOf: NameOf): string {
  if (askedCount === 0) return "";
  const named = asked.map(({ crawlerId, rttMs, failed, reportedMs }) => {
    const answer = rttMs === null ? `no answer (${failed ?? "unknown"})` : briefMs(rttMs);
    const doubt =
      reportedMs === undefined ? "" : ` (it said ${briefMs(reportedMs)}, which others contradict)`;
    return `${nameOf(crawlerId)} ${answer}${doubt}`;
  });
  return `Asked, in this order: ${named.join(", ")}${moreWords(askedCount - asked.length)}.`;
}

const moreWords = (more: number) => (more > 0 ? ` and ${more} more` : "");

function ruledOutWords({ ruledOut, ruledOutCount }: ReasonOf<"expected-gain">, nameOf: NameOf): string {
  if (ruledOutCount === 0) return "";
  const explained = ruledOut.slice(0, explainedOneByOne).map((one) => {
    const by = `${nameOf(one.by)} measured ${briefMs(one.byRttMs)} and is ${briefMs(one.peerRttMs)} from it`;
    return `${nameOf(one.crawlerId)} (at least ${briefMs(one.lowerBoundMs)}, since ${by})`;
  });
  const more = moreWords(ruledOutCount - explained.length);
  return `Ruled out by the triangle inequality, without asking: ${explained.join(", ")}${more}.`;
}

function takeOver(runnerUp: RunnerUp, nameOf: NameOf): string {
  if (runnerUp === null) return "";
  const { rttMs, atMostMs } = runnerUp;
  const guess = atMostMs === null ? "" : ` (not asked, at most about ${briefMs(atMostMs)})`;
  return `Runner-up: ${nameOf(runnerUp.crawlerId)}${rttMs === null ? guess : ` (${briefMs(rttMs)})`}.`;
}

const crawlers = (count: number) => (count === 1 ? "1 crawler" : `${count} crawlers`);

/** At most three digits: 0.034 ms, 3.4 ms, 34 ms, 340 ms. */
function briefMs(value: number): string {
  return `${value >= 99.95 ? Math.round(value) : Number(value.toPrecision(value < 1 ? 2 : 3))} ms`;
}

const briefWords: Readonly<Record<DelegationReason["type"], string>> = {
  random: "drawn at random",
  "only-candidate": "the only crawler that could take it",
  "same-company": "it has the company's other subnets",
  "under-threshold": "the first answer under the threshold",
  "fastest-of-all": "the fastest of all that were asked",
  "expected-gain": "the nearest, as far as probing was worth it",
  "by-prior": "nobody answered: the likeliest by past delegations",
  anycast: "the range answers from many places: by load",
  kept: "nobody was nearer than what is known of the crawler that had it",
  "no-candidates": "nobody could take it",
};

/** A few words for a list. An unknown reason is named by its type. */
export function briefReason(reason: Readonly<Record<string, unknown>>): string {
  const type = String(reason.type ?? "unknown");
  return briefWords[type as DelegationReason["type"]] ?? type;
}

// Evidence of slow fetches that caused a round, stored with it, and its words.

/** The fetches of one host that raised the alarm, with times in ms. */
const slowFetches = z.object({
  type: z.literal("slow-fetches"),
  host: z.string().max(253),
  rule: z.enum(["slow-in-a-row", "change-point"]),
  kind: z.enum(["connect", "firstByte"]),
  usualMs: ms,
  nowMs: ms,
  fetches: z.int().min(1),
});

export type SlowFetches = Readonly<z.infer<typeof slowFetches>>;

const kindWords = { connect: "time to connect", firstByte: "time to the first byte" } as const;

/** "Fetches had become slow: of www.example.org, 7 took 48 ms to …, usually 23 ms …", in one or two sentences. */
export function slowFetchesWords({ host, rule, kind, usualMs, nowMs, fetches }: SlowFetches): string {
  const times = `usually ${whole(usualMs)}, the last ${fetches} ${whole(nowMs)}`;
  const why =
    rule === "slow-in-a-row"
      ? "each of them slower than the operator's factor allows"
      : "too many in the upper part of what is usual to be chance";
  return `Fetches of ${host} had become slow: ${kindWords[kind]} ${times} (medians), ${why}.`;
}

/** The same in a few words, for a list. */
export function slowFetchesBrief({ host, usualMs, nowMs, fetches }: SlowFetches): string {
  return `${host} slower: ${whole(usualMs)} → ${whole(nowMs)} over ${fetches} fetches`;
}

/** The evidence in a stored round's parameters, or null. */
export function slowFetchesIn(parameters: Readonly<Record<string, unknown>>): SlowFetches | null {
  const parsed = slowFetches.safeParse(parameters.evidence);
  return parsed.success ? parsed.data : null;
}

const whole = (value: number): string => `${value < 10 ? value.toFixed(1) : Math.round(value)} ms`;
