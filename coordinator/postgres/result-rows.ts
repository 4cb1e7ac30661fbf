/** A result as the rows it becomes: nothing is written here, and what a crawler says is bounded to what the columns hold. */
import { parseAddress } from "#core/ip/address";
import type { FetchOutcome, FetchResult } from "#protocol/result";
import type { ArrivedResult } from "../flows/ports.ts";

/** The row of page_fetch. */
export function fetchRow(arrived: ArrivedResult, now: Date) {
  const { result, key } = arrived;
  const { outcome, timing } = result;
  return {
    hostHash: key.hostHash,
    urlHash: key.urlHash,
    fetchedAt: fetchedAtOf(result, now),
    outcome: outcome.type,
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
  };
}

/** The row of page, or null when nothing was fetched. */
export function pageRow(arrived: ArrivedResult, now: Date) {
  const { result, key } = arrived;
  const { page, outcome } = result;
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
    excerpt: clean(page.excerpt),
    headings: JSON.stringify(page.headings.map(({ level, text }) => ({ level, text: clean(text) }))),
    canonicalUrl: page.canonicalUrl === null ? null : clean(page.canonicalUrl),
    noindex: page.robots.noindex,
    digest: page.digest,
    simhash: page.simhash,
    words: asInteger(page.words),
    bodyBytes: asInteger(result.bodyBytes),
    wireBytes: asInteger(result.wireBytes),
    shippedBytes: asInteger(arrived.shippedBytes),
    lexemes: page.lexemes,
  };
}

/** What the URL's row in the frontier learns from the result. */
export function urlRow(arrived: ArrivedResult & { readonly failuresBefore: number }, now: Date) {
  const { result, key } = arrived;
  const { outcome } = result;
  const again = arrived.again(arrived.failuresBefore);
  return {
    hostHash: key.hostHash,
    urlHash: key.urlHash,
    state: isRefusal(outcome) ? "refused" : again.isGone ? "gone" : "due",
    nextFetchAt: again.at,
    fetchedAt: fetchedAtOf(result, now),
    failed: isFailure(outcome),
    outcome: outcome.type,
    status: statusOf(outcome),
    reason: reasonOf(outcome),
    // With the page go its validators: a 304 to them would leave us without a page.
    keepsValidators: !replacesPage(outcome),
    etag: result.etag === null ? null : clean(result.etag),
    lastModified: result.lastModified === null ? null : clean(result.lastModified),
  };
}

/** Politeness: the host is left alone until then. */
export function notBeforeOf(result: FetchResult, now: Date): Date {
  return new Date(fetchedAtOf(result, now).getTime() + result.hostDelayMs);
}

/** True when what the index holds of the URL no longer stands: there is a new page, or none any more. */
export function replacesPage(outcome: FetchOutcome): boolean {
  return (
    outcome.type === "fetched" || outcome.type === "redirected" || isRefusal(outcome) || isMissing(outcome)
  );
}

/** NUL is the one character that Postgres' text cannot hold. */
export function clean(text: string): string {
  return text.replaceAll("\0", "");
}

function isRefusal(outcome: FetchOutcome): boolean {
  return outcome.type === "refused-by-robots" || outcome.type === "refused-address";
}

function isMissing(outcome: FetchOutcome): boolean {
  return outcome.type === "http-error" && (outcome.status === 404 || outcome.status === 410);
}

function isFailure(outcome: FetchOutcome): boolean {
  return outcome.type === "failed" || outcome.type === "http-error";
}

function statusOf(outcome: FetchOutcome): number | null {
  return "status" in outcome ? outcome.status : null;
}

function reasonOf(outcome: FetchOutcome): string | null {
  switch (outcome.type) {
    case "fetched":
      return outcome.truncated ? "the body was cut at the size limit" : null;
    case "unchanged":
      return null;
    case "redirected":
      return clean(`to ${outcome.location}`);
    case "http-error":
      return `status ${outcome.status}`;
    case "refused-by-robots":
      return clean(`robots.txt: ${outcome.rule}`);
    case "refused-address":
      return clean(`${outcome.address} is a special-purpose address (${outcome.block})`);
    case "unsupported":
      return clean(`content type ${outcome.contentType} is not indexed`);
    case "failed":
      return clean(`${outcome.code}: ${outcome.reason}`);
  }
}

/** A crawler's clock may be wrong; a time to come would keep the host waiting for nothing. */
function fetchedAtOf(result: FetchResult, now: Date): Date {
  return new Date(Math.min(Date.parse(result.fetchedAt), now.getTime()));
}

/** The largest number that Postgres' integer holds. */
const maxInteger = 2_147_483_647;

export function asInteger(value: number): number {
  return Math.min(Math.round(value), maxInteger);
}
