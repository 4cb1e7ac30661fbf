/** Converts a result to rows, limited to what the columns hold. Writes nothing. */

import type { CrawlerId } from "#core/ids";
import { parseAddress } from "#core/ip/address";
import { challengeWords } from "#protocol/bot-gate";
import { type FetchOutcome, type FetchResult, maxRedirects, type PageExtract } from "#protocol/result";
import { asInteger, clean, pageDate } from "../../database/transaction.ts";
import {
  type CountedResult,
  indexedPage,
  isList,
  isSoftNotFound,
  mostListsInARow,
} from "./accepted-result.ts";
import type { PageWorth } from "./found-urls.ts";
import { asksPayment, challengeOf, isFailure, noVisits } from "./visit.ts";

export function fetchRow(arrived: CountedResult, now: Date) {
  const { result, key, next } = arrived;
  const { outcome, timing } = result;
  return {
    hostHash: key.hostHash,
    urlHash: key.urlHash,
    fetchedAt: fetchedAtOf(result, now),
    outcome: toldOutcome(outcome),
    blame: outcome.type === "failed" ? outcome.blame : null,
    status: statusOf(outcome),
    address: result.address !== null && parseAddress(result.address) ? result.address : null,
    dnsMs: timing.dnsMs,
    connectMs: timing.connectMs,
    tlsMs: timing.tlsMs,
    firstByteMs: timing.firstByteMs,
    totalMs: timing.totalMs,
    wireBytes: asInteger(result.wireBytes),
    bodyBytes: asInteger(result.bodyBytes),
    shippedBytes: asInteger(arrived.shippedBytes),
    changed: next.visit?.hasChanged ?? null,
    gapSeconds: next.visit?.gapSeconds ?? null,
  };
}

export type PageRow = NonNullable<ReturnType<typeof pageRow>>;

export function pageRow(arrived: CountedResult, now: Date) {
  const { result, key } = arrived;
  const { outcome } = result;
  const page = indexedPage(result);
  if (page === null || outcome.type !== "fetched") return null;
  return {
    hostHash: key.hostHash,
    urlHash: key.urlHash,
    url: key.url,
    host: key.host,
    fetchedAt: fetchedAtOf(result, now),
    status: outcome.status,
    contentType: clean(page.contentType),
    language: page.language,
    textSearchConfig: page.textSearchConfig,
    title: clean(page.title),
    description: clean(page.description),
    text: clean(page.text),
    unquoted: page.unquoted === undefined ? null : clean(page.unquoted),
    snippetCharacters: page.snippetCharacters ?? null,
    headings: JSON.stringify(page.headings.map(({ level, text }) => ({ level, text: clean(text) }))),
    canonicalUrl: page.canonicalUrl === null ? null : clean(page.canonicalUrl),
    noindex: page.robots.noindex,
    digest: page.digest,
    simhash: page.simhash,
    words: asInteger(page.words),
    bodyBytes: asInteger(result.bodyBytes),
    wireBytes: asInteger(result.wireBytes),
    shippedBytes: asInteger(arrived.shippedBytes),
    declaredLanguage: page.declaredLanguage === undefined ? null : clean(page.declaredLanguage),
    detectedLanguage: page.detectedLanguage ?? null,
    publishedAt: pageDate(page.publishedAt, now),
    modifiedAt: pageDate(page.modifiedAt, now),
    structured: structuredOf(page),
    preferenceSet: arrived.stated?.set ?? null,
    preferencesSince: arrived.stated?.set == null ? null : fetchedAtOf(result, now),
    needsScripts: page.needsScripts ?? null,
  };
}

function structuredOf({ structured }: PageExtract): string | null {
  if (structured === undefined) return null;
  const { type, name, description } = structured;
  return JSON.stringify({ type: clean(type), name: clean(name), description: clean(description) });
}

export function urlRow(counted: CountedResult, worth: PageWorth | null, now: Date) {
  const { result, key, next } = counted;
  const { outcome } = result;
  const { sums = noVisits, changesPerDay = null } = next.visit ?? {};
  const isMissing = isSoftNotFound(result);
  // A page stored without its text is always fetched in full, so that the text is available as soon as it may be
  // searched.
  const isSilent = isWithoutText(counted);
  // An unchanged list would not repeat its links, so no validators are kept.
  const keepsNone = isMissing || isSilent || counted.isUnsettled === true || !isOfPage(outcome);
  return {
    hostHash: key.hostHash,
    urlHash: key.urlHash,
    state: isRefusal(outcome) ? "refused" : next.isGone ? "gone" : "due",
    nextFetchAt: next.at,
    fetchedAt: fetchedAtOf(result, now),
    failed: isFailure(outcome) || isMissing,
    outcome: isMissing ? "soft-not-found" : asksPayment(outcome) ? "payment-required" : toldOutcome(outcome),
    status: statusOf(outcome),
    reason: reasonOf(counted),
    // Validators are removed with the page, because a 304 would leave no page.
    keepsValidators: !replacesPage(outcome) && !isSilent,
    etag: result.etag === null || keepsNone ? null : clean(result.etag),
    lastModified: result.lastModified === null || keepsNone ? null : clean(result.lastModified),
    digest: outcome.type !== "fetched" || keepsNone ? null : (result.page?.digest ?? null),
    worth,
    ...sums,
    changesPerDay,
  };
}

/** Whether the page is stored without its text, as its site wants. */
function isWithoutText({ result, stated }: CountedResult): boolean {
  return stated?.maySearch === false || (indexedPage(result) === null && stated?.before?.maySearch === false);
}

/** When the host may be contacted again. The delay counts from the end of the fetch. */
export function notBeforeOf(result: FetchResult, now: Date): Date {
  const overMs = fetchedAtOf(result, now).getTime() + result.timing.totalMs;
  return new Date(Math.min(overMs, now.getTime()) + result.hostDelayMs);
}

/** True when the indexed page is outdated: there is a new page, or none. */
export function replacesPage(outcome: FetchOutcome): boolean {
  return (
    outcome.type === "fetched" ||
    outcome.type === "redirected" ||
    isRefusal(outcome) ||
    isHttpMissing(outcome) ||
    asksPayment(outcome)
  );
}

function isRefusal(outcome: FetchOutcome): boolean {
  return outcome.type === "refused-by-robots" || outcome.type === "refused-address";
}

export function isHttpMissing(outcome: FetchOutcome): boolean {
  return outcome.type === "http-error" && (outcome.status === 404 || outcome.status === 410);
}

/** The validators of an error must not be used for the page. */
const isOfPage = ({ type }: FetchOutcome) => type === "fetched" || type === "unchanged";

const toldOutcome = (outcome: FetchOutcome) => (challengeOf(outcome) === null ? outcome.type : "challenged");

function statusOf(outcome: FetchOutcome): number | null {
  return "status" in outcome ? outcome.status : (challengeOf(outcome)?.status ?? null);
}

/** A crawler's clock may be wrong, and a future time would delay the host needlessly. */
export function fetchedAtOf(result: FetchResult, now: Date): Date {
  return new Date(Math.min(Date.parse(result.fetchedAt), now.getTime()));
}

/** Null if the outcome needs no further reason. */
export function reasonOf(counted: CountedResult): string | null {
  const { outcome } = counted.result;
  switch (outcome.type) {
    case "fetched":
      return fetchedWords(counted, outcome.truncated);
    case "unchanged":
      return outcome.status === 304 ? null : "the same body as before";
    case "redirected":
      return clean(`to ${outcome.location}${unfollowed(counted)}`);
    case "http-error":
      return asksPayment(outcome) ? paymentWords(outcome.price) : `status ${outcome.status}`;
    case "refused-by-robots":
      return clean(`robots.txt: ${outcome.rule}`);
    case "refused-address":
      return clean(`${outcome.address} is a special-purpose address (${outcome.block})`);
    case "unsupported":
      return clean(`content type ${outcome.contentType} is not indexed`);
    case "failed": {
      const challenge = challengeOf(outcome);
      return challenge === null ? clean(`${outcome.code}: ${outcome.reason}`) : challengeWords(challenge);
    }
  }
}

const paymentWords = (price: string | undefined) =>
  price === undefined
    ? "not for us: the site asks to be paid, and names no price"
    : `not for us: the site asks ${legible(price)} for the page`;

export const legible = (text: string): string => clean(text).replace(/\p{Cc}+/gu, " ");

function fetchedWords({ result, before }: CountedResult, truncated: boolean): string | null {
  if (isSoftNotFound(result)) return "the page says “not found”, though with status 200";
  if (isList(result)) {
    const nested = before.lists >= mostListsInARow ? ", which are left out: too many lists in a row" : "";
    return `a ${result.page?.kind} that names ${result.page?.links.length} URLs${nested}`;
  }
  return truncated ? "the body was cut at the size limit" : null;
}

function unfollowed({ before }: CountedResult): string {
  if (before.redirects < maxRedirects) return "";
  return `; not followed, it would be redirect ${before.redirects + 1} in a row`;
}

/** What a visit reveals about the page's links. */
export interface LinkFacts {
  readonly outLinks: number | null;
  /** Anansi's C (results/link-writes). Null if there was no comparison. */
  readonly changeRatio: number | null;
}

export interface Batch {
  readonly crawlerId: CrawlerId;
  readonly results: readonly CountedResult[];
  readonly now: Date;
  readonly linkFacts?: ReadonlyMap<string, LinkFacts>;
}
