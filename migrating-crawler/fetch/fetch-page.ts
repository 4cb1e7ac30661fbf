/**
 * Fetches one URL under all rules and makes the result that is shipped: robots first, then a conditional
 * GET, the header judged before the body is read, the body bounded, the page extracted. Redirects are
 * not followed: the location is reported, and the frontier decides who fetches it. Never throws.
 */
import {
  type FetchOutcome,
  type FetchResult,
  type FetchTiming,
  maxRedirects,
  type PageExtract,
} from "#protocol/result";
import { documentKind } from "../extract/document-kind.ts";
import { extractPage, mediaType } from "../extract/extract-page.ts";
import { resolveUrl } from "../extract/resolve-url.ts";
import { retryAfterSeconds } from "../limits/host-pace.ts";
import type { ConnectPhases } from "../net/connector.ts";
import { Failure, failureOf } from "../net/failure.ts";
import { dropBody, maxBodyBytes, readBody, type TakeBytes } from "./body.ts";
import type { SiteAnswer } from "./exchange.ts";
import type { OriginRobots } from "./robots.ts";
import type { SiteClient } from "./site-client.ts";

export interface PageRequest {
  readonly url: string;
  readonly etag: string | null;
  readonly lastModified: string | null;
  /** SHA-256 of the decoded body that the index has, hex. */
  readonly digest?: string | undefined;
  /** How many redirects in a row led here. */
  readonly redirects?: number | undefined;
}

export interface FetchSetting {
  readonly client: SiteClient;
  readonly robots: OriginRobots;
  readonly userAgent: string;
  readonly take: TakeBytes;
  /** Resolves when the processor may be used for long: probes under way want it quiet. */
  readonly quiet: () => Promise<void>;
  readonly now: () => Date;
}

/** The result, without the host's pace, which the host gate adds; and what the gate wants to know. */
export interface FetchedPage {
  readonly result: Omit<FetchResult, "hostDelayMs">;
  /** Null when nothing was asked of the host. */
  readonly status: number | null;
  /** The host's own time: first byte and body, without ours. */
  readonly tookMs: number;
  readonly retryAfterSeconds: number | null;
  /** False when the host was not contacted at all. */
  readonly contacted: boolean;
}

const indexed = new Set(["text/html", "application/xhtml+xml", "text/plain", ""]);

export async function fetchPage(request: PageRequest, setting: FetchSetting): Promise<FetchedPage> {
  const startedMs = performance.now();
  const fetchedAt = setting.now().toISOString();
  const url = new URL(request.url);
  const made = (part: Part): FetchedPage => ({
    result: {
      url: request.url,
      fetchedAt,
      outcome: part.outcome,
      address: part.contacted ? setting.client.address : null,
      timing: { ...part.timing, totalMs: part.timing?.totalMs ?? performance.now() - startedMs },
      wireBytes: part.wireBytes ?? 0,
      bodyBytes: part.bodyBytes ?? 0,
      etag: part.etag ?? null,
      lastModified: part.lastModified ?? null,
      page: part.page ?? null,
    },
    status: part.status ?? null,
    tookMs: part.timing?.totalMs ?? performance.now() - startedMs,
    retryAfterSeconds: part.retryAfterSeconds ?? null,
    contacted: part.contacted,
  });
  const refusal = refusedByRobots(setting.robots, url.pathname + url.search);
  if (refusal !== null) return made({ ...nothing, outcome: refusal });
  try {
    const answer = await setting.client.get({
      path: url.pathname + url.search,
      headers: headersFor(request, setting),
    });
    return made(await judge(answer, request, { ...setting, startedMs }));
  } catch (error) {
    return made({ ...nothing, outcome: outcomeOfFailure(failureOf(error)), contacted: true });
  }
}

/** The outcome when nothing could be fetched from the host, for every URL of its slice. */
export function outcomeOfFailure(failure: Failure): FetchOutcome {
  if (failure.code === "refused-address") {
    return {
      type: "refused-address",
      address: (failure.address ?? "").slice(0, 45),
      block: failure.message.slice(0, 80),
    };
  }
  return { type: "failed", blame: failure.blame, code: failure.code, reason: failure.message.slice(0, 300) };
}

type Phases = Omit<FetchTiming, "totalMs"> & { readonly totalMs: number | null };

interface Part {
  readonly outcome: FetchOutcome;
  readonly contacted: boolean;
  readonly timing: Phases;
  readonly status?: number;
  readonly wireBytes?: number;
  readonly bodyBytes?: number;
  readonly etag?: string | null;
  readonly lastModified?: string | null;
  readonly page?: PageExtract;
  readonly retryAfterSeconds?: number | null;
}

const noTiming: Phases = { dnsMs: null, connectMs: null, tlsMs: null, firstByteMs: null, totalMs: null };
const nothing = { contacted: false, timing: noTiming } as const;

function refusedByRobots(robots: OriginRobots, path: string): FetchOutcome | null {
  if (robots.type === "unreachable") return outcomeOfFailure(robots.failure);
  const verdict = robots.verdict(path);
  return verdict.allowed ? null : { type: "refused-by-robots", rule: (verdict.rule ?? "").slice(0, 300) };
}

function headersFor(request: PageRequest, setting: FetchSetting): Record<string, string> {
  return {
    "user-agent": setting.userAgent,
    accept: "text/html,application/xhtml+xml,text/plain;q=0.8,*/*;q=0.1",
    "accept-encoding": "gzip, deflate, br",
    ...(request.etag === null ? {} : { "if-none-match": request.etag }),
    ...(request.lastModified === null ? {} : { "if-modified-since": request.lastModified }),
  };
}

async function judge(
  answer: SiteAnswer,
  request: PageRequest,
  setting: FetchSetting & { readonly startedMs: number },
): Promise<Part> {
  const { status, headers } = answer;
  const known = {
    contacted: true,
    status,
    etag: headerText(headers.etag, 500),
    lastModified: headerText(headers["last-modified"], 100),
    retryAfterSeconds: retryAfterSeconds(headers["retry-after"], setting.now()),
  };
  const connected = setting.client.tellConnected();
  const timing = () => timingOf(answer, connected, setting.startedMs);
  const contentType = headerText(headers["content-type"], 200) ?? "";
  const without = withoutBody(answer, request, contentType, known.retryAfterSeconds);
  if (without !== null) {
    await dropBody(answer);
    return { ...known, outcome: without, timing: timing() };
  }
  const body = await readBody(answer, maxBodyBytes, setting.take);
  const complete = timing();
  const sizes = { wireBytes: body.wireBytes, bodyBytes: body.bytes.length };
  const kind = documentKind({ contentType, bytes: body.bytes });
  if (kind === "other" || (kind === "page" && looksBinary(body.bytes))) {
    return { ...known, ...sizes, outcome: { type: "unsupported", status, contentType }, timing: complete };
  }
  const { page, cut } = await extractPage({
    url: request.url,
    bytes: body.bytes,
    contentType: contentType === "" ? "text/html" : contentType,
    contentLanguage: headerText(headers["content-language"], 100),
    robotsTag: headers["x-robots-tag"],
    linkHeader: headers.link,
    nowMs: setting.now().getTime(),
    quiet: setting.quiet,
  });
  const outcome = { type: "fetched", status, truncated: body.truncated || cut } as const;
  return { ...known, ...sizes, outcome, timing: complete, page };
}

/** The outcome where the header says enough; null when the body is to be read. */
function withoutBody(
  answer: SiteAnswer,
  request: PageRequest,
  contentType: string,
  retryAfter: number | null,
): FetchOutcome | null {
  const { status, headers } = answer;
  if (status === 304 && (request.etag !== null || request.lastModified !== null))
    return { type: "unchanged", status };
  if (status >= 300 && status < 400) {
    const location = resolveUrl([headers.location ?? []].flat()[0] ?? "", request.url);
    if (location !== null && headers.location !== undefined) return redirected(status, location, request);
  }
  if (status < 200 || status >= 300) return { type: "http-error", status, retryAfterSeconds: retryAfter };
  if (status === 204 || status === 205) return { type: "unsupported", status, contentType };
  return indexed.has(mediaType(contentType)) ? null : { type: "unsupported", status, contentType };
}

/** Followed by the coordinator, unless it leads nowhere. */
function redirected(status: number, location: string, request: PageRequest): FetchOutcome {
  if (location === request.url) {
    return outcomeOfFailure(new Failure("redirect-loop", "the page redirects to itself"));
  }
  if ((request.redirects ?? 0) >= maxRedirects) {
    return outcomeOfFailure(
      new Failure("too-many-redirects", `more than ${maxRedirects} redirects in a row`),
    );
  }
  return { type: "redirected", status, location };
}

/** Said to be text, but more than a tenth of its beginning is control characters that no text has (WHATWG MIME Sniffing). */
function looksBinary(bytes: Buffer): boolean {
  const head = bytes.subarray(0, 1024);
  const isUtf16 = (head[0] === 0xfe && head[1] === 0xff) || (head[0] === 0xff && head[1] === 0xfe);
  if (isUtf16) return false;
  let controls = 0;
  for (const byte of head) if (byte < 0x20 && byte !== 0x1b && !(byte >= 0x09 && byte <= 0x0d)) controls++;
  return controls * 10 > head.length;
}

function timingOf(answer: SiteAnswer, connected: ConnectPhases | null, startedMs: number): Phases {
  const none: { [Phase in keyof ConnectPhases]: null } = { dnsMs: null, connectMs: null, tlsMs: null };
  return {
    ...(connected ?? none),
    firstByteMs: answer.firstByteMs,
    totalMs: performance.now() - startedMs,
  };
}

/** Printable, bounded header text; the first of several. */
function headerText(header: string | string[] | undefined, most: number): string | null {
  const text = [header ?? []].flat()[0];
  if (text === undefined || text.length > most) return null;
  return text.replaceAll("\0", "");
}
