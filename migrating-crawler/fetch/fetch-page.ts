/**
 * Fetches one URL under all rules. robots.txt comes first, then a conditional GET, whose header is judged before the body is
 * read. The body's size is limited. Extraction follows later, without contact to the site. Redirects are reported and not
 * followed, so that the frontier decides who fetches the target. Never throws.
 */
import { retryAfterSeconds } from "#core/foreign-dates";
import { withoutUser } from "#core/ip/url-host";
import { maySearch, type StatedPreference } from "#protocol/preferences";
import { type FetchOutcome, type FetchResult, type FetchTiming, maxRedirects } from "#protocol/result";
import { Failure, failureOf } from "../core/failure.ts";
import { documentKind } from "../extract/document-kind.ts";
import { bodyDigest, directiveNames } from "../extract/extract-list.ts";
import type { FetchedBody } from "../extract/extract-page.ts";
import { resolveUrl } from "../extract/resolve-url.ts";
import { contentSignal, contentUsage, robotsWords } from "../preferences/content-usage.ts";
import { licenseLinks } from "../preferences/rsl.ts";
import { boundedValues, mergedStatements } from "../preferences/statements.ts";
import { tdmReservation } from "../preferences/tdm-reservation.ts";
import {
  dropUnlessGate,
  maxBodyBytes,
  readWantedBody,
  type TakeBytes,
  throwGateInHeader,
} from "./ask-robots.ts";
import { type GateFinding, gateFailure, gateInBody } from "./bot-gate.ts";
import { acceptedCodings } from "./content-codings.ts";
import { type AnswerHeaders, headBytes, type SiteAnswer } from "./exchange.ts";
import type { OriginRobots } from "./robots.ts";
import type { SiteClient } from "./site-client.ts";
import { contentTypeOf, judgeHeader, typeOfBody } from "./wanted-type.ts";

export interface PageRequest {
  readonly url: string;
  readonly etag: string | null;
  readonly lastModified: string | null;
  /** SHA-256, in hex, of the decoded body in the index. */
  readonly digest?: string | undefined;
  /** How many consecutive redirects led here. */
  readonly redirects?: number | undefined;
}

export interface FetchSetting {
  readonly client: SiteClient;
  readonly robots: OriginRobots;
  readonly userAgent: string;
  readonly take: TakeBytes;
  readonly now: () => Date;
  /** What the origin's tdmrep.json says about uses of the page, if known. */
  readonly tdm?: readonly StatedPreference[];
}

/** The host gate adds the missing pace. */
export type PageResult = Omit<FetchResult, "hostDelayMs">;

type PageBody = Omit<FetchedBody, "quiet">;

export interface FetchedPage {
  /** Its `page` is null until extraction. */
  readonly result: PageResult;
  readonly body: PageBody | null;
  /** Null if the host was not asked. */
  readonly status: number | null;
  /** The host's own time for first byte and body, without delays caused by this crawler. */
  readonly tookMs: number;
  readonly retryAfterSeconds: number | null;
  readonly contacted: boolean;
  /** What script-only pages of this kind have in common (bot-gate.ts). */
  readonly shell: string | null;
  readonly needsScripts: boolean;
}

export async function fetchPage(request: PageRequest, setting: FetchSetting): Promise<FetchedPage> {
  const startedMs = performance.now();
  const fetchedAt = setting.now().toISOString();
  const url = new URL(request.url);
  const { client } = setting;
  const stated = (part: Part) => part.stated ?? deniedAnyway(url, part.outcome, setting);
  const made = (part: Part): FetchedPage => ({
    result: {
      url: request.url,
      fetchedAt,
      outcome: part.outcome,
      address: part.contacted ? client.address : null,
      timing: { ...part.timing, totalMs: part.timing?.totalMs ?? performance.now() - startedMs },
      wireBytes: part.wireBytes ?? 0,
      bodyBytes: part.bodyBytes ?? 0,
      etag: part.etag ?? null,
      lastModified: part.lastModified ?? null,
      ...(stated(part).length === 0 ? {} : { preferences: [...stated(part)] }),
      ...(part.contacted && client.connection !== null ? { connection: client.connection } : {}),
      page: null,
    },
    body: part.body ?? null,
    status: part.status ?? null,
    tookMs: part.timing?.totalMs ?? performance.now() - startedMs,
    retryAfterSeconds: part.retryAfterSeconds ?? null,
    contacted: part.contacted,
    shell: part.found?.shell ?? null,
    needsScripts: part.found?.needsScripts ?? false,
  });
  const refusal = refusedByRobots(setting.robots, url.pathname + url.search);
  if (refusal !== null) return made({ ...nothing, outcome: refusal });
  try {
    const answer = await client.get({
      path: url.pathname + url.search,
      headers: headersFor(request, setting),
    });
    return made(await judge(answer, request, { ...setting, startedMs }));
  } catch (error) {
    const timing = { ...noTiming, ...client.tellConnected() };
    return made({ outcome: outcomeOfFailure(failureOf(error)), contacted: true, timing });
  }
}

type Phases = Omit<FetchTiming, "totalMs"> & { readonly totalMs: number | null };

interface Part
  extends Partial<Pick<PageResult, "wireBytes" | "bodyBytes" | "etag" | "lastModified">>,
    Partial<Pick<FetchedPage, "status" | "body" | "retryAfterSeconds">> {
  readonly outcome: FetchOutcome;
  readonly contacted: boolean;
  readonly timing: Phases;
  readonly stated?: readonly StatedPreference[];
  readonly found?: GateFinding | null;
}

const noTiming: Phases = { dnsMs: null, connectMs: null, tlsMs: null, firstByteMs: null, totalMs: null };
const nothing = { contacted: false, timing: noTiming } as const;

function refusedByRobots(robots: OriginRobots, path: string): FetchOutcome | null {
  if (robots.type === "unreachable") return outcomeOfFailure(robots.failure);
  // A permanent refusal would remove the page from the index, so this outcome is a temporary failure.
  if (robots.closed !== null) return outcomeOfFailure(new Failure("robots-closed", robots.closed));
  const verdict = robots.verdict(path);
  return verdict.allowed ? null : { type: "refused-by-robots", rule: (verdict.rule ?? "").slice(0, 300) };
}

const acceptedTypes =
  "text/html,application/xhtml+xml,application/xml;q=0.9,application/rss+xml;q=0.9,application/atom+xml;q=0.9,text/plain;q=0.8,*/*;q=0.1";

function headersFor(request: PageRequest, setting: FetchSetting): Record<string, string> {
  return {
    "user-agent": setting.userAgent,
    accept: acceptedTypes,
    "accept-encoding": acceptedCodings,
    ...(isSendable(request.etag) ? { "if-none-match": request.etag } : {}),
    ...(isSendable(request.lastModified) ? { "if-modified-since": request.lastModified } : {}),
  };
}

/** A stored validator is sent back as it was received, if it is valid in a header (RFC 9110 section 5.5). */
function isSendable(validator: string | null): validator is string {
  return validator !== null && /^[\t\x20-\x7e\x80-\xff]+$/.test(validator);
}

async function judge(
  answer: SiteAnswer,
  request: PageRequest,
  setting: FetchSetting & { readonly startedMs: number },
): Promise<Part> {
  const { status, headers } = answer;
  await throwGateInHeader(answer, "page", setting.take);
  const known = {
    contacted: true,
    status,
    etag: headerText(headers.etag, 500),
    lastModified: headerText(headers["last-modified"], 100),
    retryAfterSeconds: retryAfterSeconds(headers["retry-after"], setting.now()),
  };
  const connected = setting.client.tellConnected();
  const timing = (): Phases => ({
    ...noTiming,
    ...connected,
    firstByteMs: answer.firstByteMs,
    totalMs: performance.now() - setting.startedMs,
  });
  const contentType = contentTypeOf(headers["content-type"]);
  const stated = statedBefore(request.url, headers, setting);
  let outcome = outcomeOfHeader(answer, request, known.retryAfterSeconds);
  if (outcome !== null) {
    if (outcome.type !== "redirected") await dropUnlessGate(answer, "page", setting.take);
    // A redirect's body is not needed, but it must end.
    else if (!(await answer.drop(setting.take, maxRedirectBytes))) outcome = endlessRedirect;
    return { ...known, outcome, timing: timing(), ...(outcome.type === "unchanged" ? { stated } : {}) };
  }
  const wants = (head: Buffer) => typeOfBody(head, contentType, headers) !== null;
  const body = await readWantedBody(answer, { limit: maxBodyBytes, take: setting.take, wants });
  const complete = timing();
  const found = body === null || body.truncated ? null : gateInBody(body.bytes, answer);
  if (found?.provider) throw gateFailure(found.provider, "page", status);
  const type = body && typeOfBody(body.bytes.subarray(0, headBytes), contentType, headers);
  const sizes = { wireBytes: body?.wireBytes ?? 0, bodyBytes: body?.bytes.length ?? 0 };
  if (body === null || type === null || documentKind({ contentType: type, bytes: body.bytes }) === "other") {
    return { ...known, ...sizes, outcome: unsupported(answer), timing: complete };
  }
  const digest = request.digest === undefined ? undefined : bodyDigest(body.bytes);
  if (digest !== undefined && digest === request.digest) {
    return { ...known, ...sizes, outcome: { type: "unchanged", status }, timing: complete, stated };
  }
  outcome = { type: "fetched", status, truncated: body.truncated || partOf(answer) === "start" };
  const toExtract = {
    url: request.url,
    bytes: body.bytes,
    digest,
    contentType: type,
    contentLanguage: headerText(headers["content-language"], 100),
    robotsTag: headers["x-robots-tag"],
    linkHeader: headers.link,
    stated,
    refreshHeader: headers.refresh,
    nowMs: setting.now().getTime(),
  };
  return { ...known, ...sizes, outcome, timing: complete, body: toExtract, found };
}

function statedBefore(url: string, headers: AnswerHeaders, setting: FetchSetting): StatedPreference[] {
  return mergedStatements([
    ...statedInRobots(new URL(url), setting.robots),
    ...(setting.tdm ?? []),
    ...boundedValues(headers["content-signal"]).flatMap((value) => contentSignal(value, "header")),
    ...boundedValues(headers["content-usage"]).flatMap((value) => contentUsage(value, "header")),
    ...tdmReservation({ reservation: headers["tdm-reservation"], policy: headers["tdm-policy"] }, "header"),
    ...robotsWords(directiveNames(headers["x-robots-tag"]), "header"),
    ...licenseLinks(headers.link),
  ]);
}

function statedInRobots({ pathname, search }: URL, robots: OriginRobots): StatedPreference[] {
  if (robots.type !== "known") return [];
  return robots.stated(pathname + search).map(({ line: _, ...stated }) => stated);
}

/**
 * A page that could not be fetched stays in the index, unless robots.txt now denies its use for search. The header of an error
 * answer does not count, because it concerns the error page.
 */
function deniedAnyway(url: URL, outcome: FetchOutcome, { robots }: FetchSetting): StatedPreference[] {
  if (outcome.type !== "http-error" && outcome.type !== "failed") return [];
  const stated = statedInRobots(url, robots);
  return maySearch(stated) ? [] : mergedStatements(stated);
}

const endlessRedirect = outcomeOfFailure(new Failure("bad-redirect", "the body of the redirect has no end"));

function headerText(header: string | string[] | undefined, most: number): string | null {
  const text = [header ?? []].flat()[0];
  if (text === undefined || text.length > most) return null;
  return text.replaceAll("\0", "");
}

// Resolves a redirect's Location against the page's URL (RFC 9110 section 10.2.2, WHATWG Fetch "location URL").

/** 305 and 306 name proxies, and 304 answers a condition. */
const redirecting = new Set([300, 301, 302, 303, 307, 308]);

/** Some sites send the whole page with a redirect. A longer body of unannounced length is abuse. */
const maxRedirectBytes = 256 * 1024;

const toldCharacters = 100;

/** Returns an absolute http(s) URL, a Failure if the target is invalid, or null if the answer is not a redirect. */
function redirectTarget({ status, headers }: SiteAnswer, page: PageRequest): string | Failure | null {
  const locations = new Set([headers.location ?? []].flat().map((value) => value.trim()));
  const [location] = locations;
  if (!redirecting.has(status) || location === undefined || location === "") return null;
  if (locations.size > 1) return new Failure("bad-redirect", `${locations.size} different Locations`);
  const target = resolveUrl(location, page.url);
  if (target === null) return new Failure("bad-redirect", `not a URL that is crawled: ${shown(location)}`);
  if (target === withoutFragment(page.url)) {
    const isSpelledAlike = new URL(location, page.url).href.replace(/#.*/s, "") === target;
    const whereto = isSpelledAlike ? "itself" : "another spelling of its own URL";
    return new Failure("redirect-loop", `the page redirects to ${whereto}`);
  }
  if ((page.redirects ?? 0) < maxRedirects) return target;
  return new Failure("too-many-redirects", `more than ${maxRedirects} redirects in a row`);
}

function shown(location: string): string {
  const start = withoutUser(location)
    .slice(0, toldCharacters)
    .replace(/[^\x20-\x7e]/g, "?");
  return location.length > toldCharacters ? `${start}… (${location.length} bytes)` : start;
}

function withoutFragment(url: string): string {
  const parsed = new URL(url);
  parsed.hash = "";
  return parsed.href;
}

// Judges an answer by its header, which gives an outcome or shows that the body must be read.

/** Returns null if the body must be read. */
function outcomeOfHeader(
  answer: SiteAnswer,
  page: PageRequest,
  retryAfterSeconds: number | null,
): FetchOutcome | null {
  const { status, headers } = answer;
  if (status === 304 && (page.etag ?? page.lastModified) !== null) return { type: "unchanged", status };
  const target = redirectTarget(answer, page);
  if (typeof target === "string") return { type: "redirected", status, location: target };
  if (target !== null) return outcomeOfFailure(target);
  if (status < 200 || status >= 300) {
    const price = status === 402 ? askedPrice(headers) : null;
    return { type: "http-error", status, retryAfterSeconds, ...(price === null ? {} : { price }) };
  }
  if (status === 204 || status === 205) return unsupported(answer);
  if (status === 206 && partOf(answer) === "other") {
    const words = "a part of the page, which was not asked for (status 206)";
    return outcomeOfFailure(new Failure("bad-response", words));
  }
  return judgeHeader(contentTypeOf(headers["content-type"]), headers) === "leave"
    ? unsupported(answer)
    : null;
}

function unsupported({ status, headers }: SiteAnswer): FetchOutcome {
  return { type: "unsupported", status, contentType: contentTypeOf(headers["content-type"]).slice(0, 200) };
}

/**
 * Classifies a 206 (RFC 9110 section 14.4), which the crawler never requests: all of the page, its start, or another part. Any
 * other answer is whole.
 */
function partOf({ status, headers }: Pick<SiteAnswer, "status" | "headers">): "whole" | "start" | "other" {
  if (status !== 206) return "whole";
  const range = /^\s*bytes\s+(\d{1,15})-(\d{1,15})\/(\d{1,15}|\*)\s*$/i.exec(
    String(headers["content-range"]),
  );
  if (range === null || Number(range[1]) !== 0) return "other";
  return Number(range[2]) + 1 === Number(range[3]) ? "whole" : "start";
}

// Converts a failure into the outcome that is recorded.

export function outcomeOfFailure(failure: Failure): FetchOutcome {
  if (failure.code === "refused-address") {
    return {
      type: "refused-address",
      address: (failure.address ?? "").slice(0, 45),
      block: failure.message.slice(0, 80),
    };
  }
  const { blame, code, challenge } = failure;
  const reason = failure.message.slice(0, 300);
  return { type: "failed", blame, code, reason, ...(challenge === null ? {} : { challenge }) };
}

// Reads the price that a site asks for with a 402: `crawler-price` (Cloudflare's pay per crawl, as of April 2026: `USD 0.01`),
// or else the first offer of `PAYMENT-REQUIRED` (x402 version 2, HTTP transport: base64 of JSON). The price is only shown to
// people. The crawler never pays.

const maxPriceCharacters = 80;
const maxOfferCharacters = 16_384;

export function askedPrice(headers: Readonly<Record<string, string | string[] | undefined>>): string | null {
  const stated = legible([headers["crawler-price"] ?? []].flat()[0] ?? "");
  return stated === "" ? offeredPrice([headers["payment-required"] ?? []].flat()[0] ?? "") : stated;
}

/** The amount is in the asset's smallest units, as offered: `10000 USDC on eip155:84532 (x402)`. */
function offeredPrice(header: string): string | null {
  if (header === "" || header.length > maxOfferCharacters) return null;
  try {
    const offer: unknown = JSON.parse(Buffer.from(header, "base64").toString("utf8"));
    const first = fieldOf(fieldOf(offer, "accepts"), "0");
    const amount = fieldOf(first, "amount");
    if (typeof amount !== "string" && typeof amount !== "number") return null;
    const asset = fieldOf(fieldOf(first, "extra"), "name") ?? "units";
    const network = fieldOf(first, "network") ?? "?";
    return legible(`${amount} ${asset} on ${network} (x402)`);
  } catch {
    return null;
  }
}

function fieldOf(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null && Object.hasOwn(value, name)
    ? (value as Record<string, unknown>)[name]
    : undefined;
}

function legible(text: string): string {
  return text
    .slice(0, 200)
    .replace(/[^\x21-\x7e]+/g, " ")
    .trim()
    .slice(0, maxPriceCharacters);
}
