/**
 * Results from a crawler become pages, fetches, links and frontier rows, in one transaction with the
 * acknowledged sequence. What needs thought is done here (keys, which links to follow, when to fetch
 * again); the store only writes.
 */

import type { CrawlerId, LeaseId } from "#core/ids";
import { urlKeyOf } from "#core/url-key";
import type { FetchOutcome, FetchResult, Seal } from "#protocol/result";
import { type FullResult, withFullLinks } from "../channels/known-links.ts";
import type { NewHostBudget } from "../frontier/budgets.ts";
import type { ArrivedResult, CrawlScope, NextFetch, ResultStore, TakenResults } from "../frontier/ports.ts";
import { fixedPlan, type PlanInForce } from "../recrawl/recrawl-plan.ts";
import {
  findingsOf,
  isGone,
  nextFetchAt,
  type RecrawlSettings,
  type ThisVisit,
  type VisitFindings,
} from "../recrawl/visit-findings.ts";
import { namedUrls } from "./named-urls.ts";
import { implausible } from "./plausible-result.ts";

export interface WireResult {
  readonly sequence: number;
  readonly leaseId: LeaseId;
  readonly result: FetchResult;
  readonly wireBytes: number;
}

export interface ResultBatch {
  readonly crawlerId: CrawlerId;
  readonly spoolId: string;
  readonly results: readonly WireResult[];
  /** What the crawler signed for them; absent: it has no key to sign with. */
  readonly seals?: readonly Seal[];
}

export interface TakeResultsSettings {
  readonly scope: CrawlScope;
  readonly recrawl: RecrawlSettings;
  /** Absent: every page after the same interval. */
  readonly plan?: PlanInForce;
  /** Absent: results may name as many new hosts as they like. */
  readonly newHosts?: NewHostBudget;
}

/** Stores a batch; resolves when it is committed. A result whose URL has no key is acknowledged and dropped. */
export async function takeResults(
  batch: ResultBatch,
  results: ResultStore,
  settings: TakeResultsSettings,
  now: Date,
): Promise<TakenResults> {
  const { crawlerId } = batch;
  const faults = batch.results.flatMap(({ result }) => implausible(result) ?? []);
  const plausible = batch.results.filter(({ result }) => implausible(result) === null);
  const arrived = (await withFullLinks(plausible, results))
    .map((one) => arrivedResult(one, settings, now))
    .filter((one) => one !== null);
  const mostNewHosts = settings.newHosts?.left(crawlerId, now);
  const taken = await results.take({
    crawlerId,
    spoolId: batch.spoolId,
    results: arrived,
    scope: settings.scope,
    now,
    lastSequence: batch.results.at(-1)?.sequence ?? 0,
    seals: batch.seals ?? [],
    ...(mostNewHosts === undefined ? {} : { mostNewHosts }),
  });
  settings.newHosts?.spend(crawlerId, taken.newHosts ?? 0, now);
  const isFlood = mostNewHosts !== undefined && (taken.newHosts ?? 0) >= mostNewHosts;
  const refused = [
    ...(taken.refused ?? []),
    ...(faults.length === 0 ? [] : [impossible(faults[0]!, faults.length)]),
    ...(isFlood ? [linkFlood(settings.newHosts!.perDay)] : []),
  ];
  return refused.length === 0 ? taken : { ...taken, refused };
}

const impossible = (words: string, count: number) => ({ kind: "impossible-result", words, count });

const linkFlood = (perDay: number) => ({
  kind: "link-flood",
  words: `its results named ${perDay} hosts today that nobody knew; further ones are left out until midnight (UTC)`,
  count: 1,
});

function arrivedResult(one: FullResult, settings: TakeResultsSettings, now: Date): ArrivedResult | null {
  const key = urlKeyOf(one.result.url);
  if (typeof key === "string") return null;
  const { links, admit } = namedUrls(one.result, key, settings.scope.followNofollow ?? false);
  return {
    sequence: one.sequence,
    leaseId: one.leaseId,
    result: one.result,
    shippedBytes: one.wireBytes,
    again: (failures, page) => againAt({ result: one.result, now, failures, page }, settings),
    admit,
    links,
    key,
    ...(one.hasLostLinks && { hasLostLinks: true }),
  };
}

interface Again {
  readonly result: FetchResult;
  readonly now: Date;
  readonly failures: number;
  readonly page: Parameters<ArrivedResult["again"]>[1];
}

/** By the plan where it knows the page, else after the fixed interval; what failed waits in any case. */
function againAt({ result, now, failures, page }: Again, settings: TakeResultsSettings): NextFetch {
  const outcome = outcomeForRecrawl(result);
  const visit =
    page && findingsOf(visitOf(result, outcome, page.fetchedAt), page.known, settings.plan ?? fixedPlan);
  const recrawl = { ...settings.recrawl, intervalSeconds: intervalOf(visit, settings.recrawl) };
  const attempt = { now, outcome, failures };
  return { at: nextFetchAt(attempt, recrawl), isGone: isGone(attempt, recrawl), ...(visit && { visit }) };
}

function intervalOf(visit: VisitFindings | undefined, { intervalSeconds }: RecrawlSettings): number {
  const planned = visit?.intervalSeconds ?? intervalSeconds;
  return visit?.isLearning ? Math.min(planned, intervalSeconds) : planned;
}

function visitOf(result: FetchResult, outcome: FetchOutcome, fetchedAt: Date): ThisVisit {
  const stated = result.lastModified ?? result.page?.modifiedAt;
  const changedAt = stated === undefined ? null : new Date(stated);
  return {
    fetchedAt,
    outcome,
    digest: result.page?.digest ?? null,
    changedAt: changedAt === null || Number.isNaN(changedAt.getTime()) ? null : changedAt,
  };
}

/** A page that says "not found" with status 200 is waited for, and given up, like a missing one. */
function outcomeForRecrawl({ outcome, page }: FetchResult): FetchOutcome {
  const isMissing = outcome.type === "fetched" && page?.softNotFound === true;
  return isMissing ? { type: "http-error", status: 404, retryAfterSeconds: null } : outcome;
}
