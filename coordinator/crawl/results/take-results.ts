/**
 * Turns a crawler's results into pages, fetches, links and frontier rows, in one transaction with the acknowledged
 * sequence. Everything is decided here (keys, links to follow, time of the next fetch); the store only writes.
 */

import { type UrlKey, urlKeyOf } from "#core/url-key";
import {
  badResultReason,
  type FetchOutcome,
  type FetchResult,
  failedResult,
  maxPageLinks,
  type PageExtract,
} from "#protocol/result";
import { foreignDateMs } from "../../core/foreign-dates.ts";
import { following } from "../../core/policy.ts";
import type { ResultBatch, WireResult } from "../../place/crawlers/crawler.ts";
import type { ArrivedResult, NextFetch, RefusedResult, TakenResults } from "../batch/accepted-result.ts";
import type { AdmittedUrl } from "../batch/found-urls.ts";
import type { VisitFindings } from "../batch/visit.ts";
import type { CrawlScope } from "../frontier/frontier.ts";
import type { ScopeSettings } from "../frontier/frontier-settings.ts";
import { fixedPlan, type PlanInForce } from "../recrawl/recrawl-plan.ts";
import {
  defaultRecrawlSettings,
  findingsOf,
  isGone,
  nextFetchAt,
  type RecrawlSettings,
  type ThisVisit,
} from "../recrawl/visit-findings.ts";
import type { ResultStore } from "./result-store.ts";

export interface TakeResultsSettings {
  readonly scope: CrawlScope;
  readonly recrawl: RecrawlSettings;
  /** If absent, all pages have the same interval. */
  readonly plan?: PlanInForce;
}

/** Resolves when committed. A result whose URL has no key is dropped but acknowledged. */
export async function takeResults(
  batch: ResultBatch,
  results: ResultStore,
  settings: TakeResultsSettings,
  now: Date,
): Promise<TakenResults> {
  const { crawlerId } = batch;
  const faults = batch.results.flatMap(({ result }) => implausible(result) ?? []);
  const arrived = batch.results
    .map((one) => arrivedResult(plausible(one), settings, now))
    .filter((one) => one !== null);
  const taken = await results.take({
    crawlerId,
    spoolId: batch.spoolId,
    results: arrived,
    scope: settings.scope,
    now,
    lastSequence: batch.results.at(-1)?.sequence ?? 0,
  });
  const bad = batch.results.flatMap(({ result }) => badResultReason(result) ?? []);
  const refused = [
    ...(taken.refused ?? []),
    ...incidentOf("impossible-result", faults),
    ...incidentOf("bad-result", bad),
  ];
  return refused.length === 0 ? taken : { ...taken, refused };
}

/** Combines faults into one incident, with the words of the first. */
function incidentOf(kind: string, faults: readonly string[]): RefusedResult[] {
  const [words] = faults;
  return words === undefined ? [] : [{ kind, words, count: faults.length }];
}

function arrivedResult(one: WireResult, settings: TakeResultsSettings, now: Date): ArrivedResult | null {
  const key = urlKeyOf(one.result.url);
  if (typeof key === "string") return null;
  const { links, admit, foreign } = namedUrls(one.result, key, settings.scope.followNofollow ?? false);
  return {
    sequence: one.sequence,
    leaseId: one.leaseId,
    result: one.result,
    shippedBytes: one.wireBytes,
    again: (failures, page) => againAt({ result: one.result, now, failures, page }, settings),
    admit,
    foreign,
    links,
    key,
  };
}

interface Again {
  readonly result: FetchResult;
  readonly now: Date;
  readonly failures: number;
  readonly page: Parameters<ArrivedResult["again"]>[1];
}

/** By the plan if it knows the page, otherwise after the fixed interval. Failures have a wait of their own. */
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
  const changedMs = foreignDateMs(stated ?? "");
  return {
    fetchedAt,
    outcome,
    digest: result.page?.digest ?? null,
    changedAt: changedMs === null ? null : new Date(changedMs),
  };
}

/** Treats a page that says "not found" with status 200 as missing. */
function outcomeForRecrawl({ outcome, page }: FetchResult): FetchOutcome {
  const isMissing = outcome.type === "fetched" && page?.softNotFound === true;
  return isMissing ? { type: "http-error", status: 404, retryAfterSeconds: null } : outcome;
}

// The URLs that a result names. Links and redirects belong to the web graph; sitemaps, feeds and their entries do
// not. Those that may be followed are admitted, except links of a type that no crawler reads. Redirects, including a
// meta refresh of a few seconds, add no depth. What a host's own robots.txt and lists name has the depth of its seeds
// or one more. Everything else is one link deeper than the page.

export function namedUrls(
  result: FetchResult,
  from: UrlKey,
  followNofollow: boolean,
): Pick<ArrivedResult, "links" | "admit" | "foreign"> {
  const { links, admit } = fromDocument(result, from, followNofollow);
  return {
    links,
    admit: [...sitemapsOfRobots(result, from), ...admit],
    foreign: result.page?.kind === "sitemap" ? crossSubmitted(result.page, from) : [],
  };
}

/** An entry of another host has a depth of one link from a seed, if that host's robots.txt names the sitemap. */
function crossSubmitted({ foreignLinks = [] }: PageExtract, from: UrlKey): AdmittedUrl[] {
  return foreignLinks.flatMap(({ url }) => {
    const key = urlKeyOf(url);
    if (typeof key === "string" || key.hostHash === from.hostHash) return [];
    return [{ key, depth: 1, fromSeed: true, lists: 1 }];
  });
}

function fromDocument(
  { outcome, page }: FetchResult,
  from: UrlKey,
  followNofollow: boolean,
): Pick<ArrivedResult, "links" | "admit"> {
  if (outcome.type === "redirected") return fromRedirect(outcome.location, from);
  if (page === null || page.softNotFound === true) return { links: [], admit: [] };
  if (page.kind !== undefined && page.kind !== "page") return { links: [], admit: fromList(page, from) };
  const { links, admit } = fromPage(page, from, followNofollow);
  return { links, admit: [...refreshOf(page, from, followNofollow), ...feedsOf(page, from), ...admit] };
}

function fromRedirect(location: string, from: UrlKey): Pick<ArrivedResult, "links" | "admit"> {
  const key = urlKeyOf(location);
  if (typeof key === "string" || key.url === from.url) return { links: [], admit: [] };
  const link = { hostHash: key.hostHash, urlHash: key.urlHash, anchor: "", nofollow: false };
  return { links: [link], admit: [{ key, depth: 0, redirects: 1 }] };
}

/** A page with a slower refresh can be read, so the target of the refresh is an ordinary link. */
const mostRedirectSeconds = 10;

function refreshOf({ refresh, robots }: PageExtract, from: UrlKey, followNofollow: boolean): AdmittedUrl[] {
  if (refresh === undefined || refresh.seconds > mostRedirectSeconds) return [];
  if (robots.nofollow && !followNofollow) return [];
  const key = urlKeyOf(refresh.url);
  return typeof key === "string" || key.url === from.url ? [] : [{ key, depth: 0, redirects: 1 }];
}

function fromPage(
  page: PageExtract,
  from: UrlKey,
  followNofollow: boolean,
): Pick<ArrivedResult, "links" | "admit"> {
  const links = new Map<string, ArrivedResult["links"][number]>();
  const admit: AdmittedUrl[] = [];
  for (const { url, anchor, nofollow, contentType } of page.links) {
    const key = urlKeyOf(url);
    if (typeof key === "string" || key.url === from.url) continue;
    // Among links to one URL, the first that may be followed counts.
    if (links.get(key.url)?.nofollow === false || (nofollow && links.has(key.url))) continue;
    links.set(key.url, { hostHash: key.hostHash, urlHash: key.urlHash, anchor, nofollow });
    if (contentType !== undefined) continue;
    if ((!nofollow || followNofollow) && !page.robots.nofollow) admit.push({ key, depth: 1 });
  }
  return { links: [...links.values()], admit };
}

/** Entries of the list's own host have a depth of one link from a seed, however deep the list was found. */
function fromList(page: PageExtract, from: UrlKey): AdmittedUrl[] {
  return page.links.flatMap(({ url, modifiedAt, changeFrequency }) => {
    const key = urlKeyOf(url);
    if (typeof key === "string" || key.url === from.url) return [];
    const isOwn = key.hostHash === from.hostHash;
    const changedMs = isOwn ? foreignDateMs(modifiedAt ?? "") : null;
    return [
      {
        key,
        depth: 1,
        fromSeed: isOwn,
        lists: 1,
        ...(changedMs === null ? {} : { modifiedAt: new Date(changedMs) }),
        ...(isOwn && changeFrequency !== undefined ? { changeFrequency } : {}),
      },
    ];
  });
}

function feedsOf(page: PageExtract, from: UrlKey): AdmittedUrl[] {
  if (page.robots.nofollow) return [];
  return (page.feeds ?? []).flatMap((url) => asList(url, from, { depth: 1 }));
}

function sitemapsOfRobots({ robots }: FetchResult, from: UrlKey): AdmittedUrl[] {
  return (robots?.sitemaps ?? []).flatMap((url) => asList(url, from, { depth: 0, fromSeed: true }));
}

/** Only lists of the page's own host. Other lists are ordinary links, so that no site uses up another site's limit. */
function asList(
  url: string,
  from: UrlKey,
  at: { readonly depth: number; readonly fromSeed?: boolean },
): AdmittedUrl[] {
  const key = urlKeyOf(url);
  if (typeof key === "string") return [];
  return key.hostHash === from.hostHash ? [{ key, ...at, isList: true }] : [{ key, depth: 1 }];
}

// Finds results that our crawlers never send, whatever a site serves: more links or bytes than the limits. Such a
// crawler runs other software than it claims, so the result counts only as a failed fetch.

/** Bodies are read up to 5 MB, and a page takes little more than its body on the wire. */
const mostPageBytes: number = 64 * 1024 * 1024;

function plausible(one: WireResult): WireResult {
  const fault = implausible(one.result);
  return fault === null ? one : { ...one, result: failedResult(one.result, fault) };
}

/** Returns why the result is impossible, or null. */
function implausible({ page, outcome, bodyBytes, wireBytes }: FetchResult): string | null {
  if (bodyBytes > mostPageBytes || wireBytes > mostPageBytes) {
    return `a page of ${Math.max(bodyBytes, wireBytes)} bytes, and none is read so far`;
  }
  if (page === null) return null;
  if (outcome.type !== "fetched") return `there is a page, though the outcome is ${outcome.type}`;
  const isPage = page.kind === undefined || page.kind === "page";
  if (isPage && page.links.length > maxPageLinks) {
    return `a page with ${page.links.length} links, and ${maxPageLinks} are shipped`;
  }
  return null;
}

export function takeResultsSettings(
  config: { readonly scope: ScopeSettings; readonly recrawl: { readonly intervalHours: number } },
  plan: () => PlanInForce = () => fixedPlan,
): TakeResultsSettings {
  return following(() => ({
    scope: config.scope,
    recrawl: { ...defaultRecrawlSettings, intervalSeconds: config.recrawl.intervalHours * 3600 },
    plan: plan(),
  }));
}
