/**
 * Why a round ended as it did, as a value: every figure that is needed to explain it later. Stored with
 * the round (jsonb) and put into words by `reason.ts`. Lists are bounded, because a fleet of a thousand
 * crawlers would otherwise write more reason than result; the count beside a list is always complete.
 */
import { z } from "zod";
import { asCrawlerId } from "#core/ids";

/** Crawlers named one by one in a reason, at most. */
export const maxNamedCrawlers = 24;

const crawlerId = z
  .int()
  .min(1)
  .transform((value) => asCrawlerId(value));
const ms = z.number().min(0);
const count = z.int().min(0);
const share = z.number().min(0).max(1);

const askedCrawler = z.object({ crawlerId, rttMs: ms.nullable(), failed: z.string().nullable() });
const asked = { asked: z.array(askedCrawler), askedCount: count };

/** A crawler that cannot be nearer than `lowerBoundMs`: `by` measured `byRttMs`, and the two are `peerRttMs` apart. */
const ruledOutCrawler = z.object({
  crawlerId,
  lowerBoundMs: ms,
  by: crawlerId,
  byRttMs: ms,
  peerRttMs: ms,
});

/** Who takes over: measured, or at most so far away by the triangle inequality, or only the likeliest. */
const runnerUp = z.object({ crawlerId, rttMs: ms.nullable(), atMostMs: ms.nullable() }).nullable();

const decidingReasons = [
  z.object({ type: z.literal("random"), candidates: count, runnerUp }),
  z.object({ type: z.literal("only-candidate"), runnerUp }),
  /** ipmicra: other subnets of the same company belong to this crawler alone; nothing was probed. */
  z.object({ type: z.literal("same-company"), subnetsOwned: count, runnerUp }),
  /** ipmicra: the first answer under the threshold, and at which step of the climb its crawler was found. */
  z.object({
    type: z.literal("under-threshold"),
    thresholdMs: ms,
    rttMs: ms,
    level: z.enum(["company", "subnet", "ancestor", "slash8", "root"]),
    ...asked,
    runnerUp,
  }),
  /** exhaustive (`thresholdMs` is null), and ipmicra when nobody was under the threshold. */
  z.object({ type: z.literal("fastest-of-all"), thresholdMs: ms.nullable(), rttMs: ms, ...asked, runnerUp }),
  /** nearest: stopped because no further probe was worth its cost. */
  z.object({
    type: z.literal("expected-gain"),
    stop: z.enum(["gain-below-cost", "all-ruled-out", "all-asked"]),
    rttMs: ms,
    lambdaMs: ms,
    /** λ after the discount for a holder that is new to us. */
    costMs: ms,
    /** The best that was left to ask, and what asking it was expected to save. */
    next: z.object({ crawlerId, expectedGainMs: ms, lowerBoundMs: ms }).nullable(),
    certainty: share,
    ...asked,
    ruledOut: z.array(ruledOutCrawler),
    ruledOutCount: count,
    runnerUp,
  }),
  /** Nobody answered: the likeliest by past delegations, to be tried again. */
  z.object({
    type: z.literal("by-prior"),
    share,
    ...asked,
    candidates: count,
    runnerUp,
    /** It stays with the crawler that had it before, whoever is the likeliest. */
    kept: z.boolean().optional(),
  }),
] as const;

export const delegationReason = z.discriminatedUnion("type", [
  ...decidingReasons,
  /** The range answers from several places at once: latency cannot choose, load does. */
  z.object({
    type: z.literal("anycast"),
    near: z.object({ crawlerId, rttMs: ms }),
    far: z.object({ crawlerId, rttMs: ms }),
    /** What the two answers add up to at least, if one machine gave both. */
    leastSumMs: ms,
    by: z.enum(["light", "peer-rtt"]),
    /** A third crawler, whose answer contradicts one place as well. */
    confirmed: z.object({ crawlerId, rttMs: ms }).nullable().default(null),
    /** Crawlers that answered fast; among them the one with the most room was taken. */
    fast: count.default(0),
    runnerUp: runnerUp.default(null),
  }),
  z.object({ type: z.literal("no-candidates") }),
]);

export type DelegationReason = z.output<typeof delegationReason>;
export type ReasonOf<Type extends DelegationReason["type"]> = Extract<DelegationReason, { type: Type }>;
export type AskedCrawler = z.output<typeof askedCrawler>;
export type RuledOutCrawler = z.output<typeof ruledOutCrawler>;
export type RunnerUp = z.output<typeof runnerUp>;

/** A reason that a policy gives; the runner-up is the same business for all and added after. */
export type Verdict = WithoutRunnerUp<z.output<(typeof decidingReasons)[number]>>;
type WithoutRunnerUp<Reason> = Reason extends unknown ? Omit<Reason, "runnerUp"> : never;

/** A reason read back from the database; null when it is none (damaged, or written by another version). */
export function parseReason(value: unknown): DelegationReason | null {
  const parsed = delegationReason.safeParse(value);
  return parsed.success ? parsed.data : null;
}
