/** Fetches a single page, following every rule that a crawler follows. Uses a crawler's settings file if one is given. */
import { closeSync, mkdtempSync, openSync, readSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Command } from "commander";
import { answersWords, statementLines } from "#coordinator/crawl/batch/stated-uses";
import { NearcrawlError, UsageError } from "#core/errors";
import { canParseUrl } from "#core/ip/url-host";
import { printable } from "#core/terminal-text";
import { type Followed, type FollowedHop, followRedirects } from "#crawler/crawl/follow-redirects";
import { closeTools, type FetchTools, fetchTools } from "#crawler/crawl/slice-tools";
import { resolveUrl } from "#crawler/extract/resolve-url";
import { type FetchingConfig, fetchingConfig } from "#crawler/settings/config";
import { readSettingsFile } from "#crawler/settings/settings-file";
import { maxUrlLength } from "#protocol/fields";
import { type StatedPreference, type UseAnswers, useAnswers } from "#protocol/preferences";
import type { FetchOutcome, FetchResult, FetchTiming, PageExtract } from "#protocol/result";
import { softwareVersion } from "#protocol/software-version";
import { userAgent } from "#protocol/user-agent";
import { answerText } from "../answer-text.ts";

export interface SingleFetchOptions {
  readonly config?: string;
  readonly resolver?: readonly string[];
  readonly proxy?: string;
  readonly allowRange?: readonly string[];
  readonly userAgent?: string;
}

export function withFetchOptions(command: Command): Command {
  return command
    .option(
      "--config <file>",
      "a crawler's settings as JSON: its limits and deny-lists hold; flags win over it",
    )
    .option("--resolver <address:port...>", "DNS servers in place of the system's")
    .option("--proxy <url>", "http://HOST:PORT (CONNECT) or socks5://HOST:PORT")
    .option(
      "--allow-range <range...>",
      "special-purpose ranges that may be contacted all the same, with ports (127.0.0.1:8080) or without",
    )
    .option("--user-agent <text>", "what to say of ourselves; begins with Nearcrawl/");
}

/** Follows up to five redirects. Requests the URL as a crawler does: without fragment, user and password. */
export async function singleFetch(url: string, options: SingleFetchOptions): Promise<Followed> {
  const asked = canParseUrl(url) ? resolveUrl(url, url) : null;
  if (asked === null)
    throw new UsageError(`${url}: must be an http(s) URL of at most ${maxUrlLength} characters`);
  return await withFetchTools(options, (tools) =>
    followRedirects(asked, tools, new AbortController().signal),
  );
}

/** Runs the work with a crawler's tools, without a coordinator or storage. */
export async function withFetchTools<T>(
  options: SingleFetchOptions,
  work: (tools: FetchTools) => Promise<T>,
): Promise<T> {
  const config = configOf(options);
  const userAgent = statedUserAgent(options.userAgent);
  const home = mkdtempSync(join(tmpdir(), "nearcrawl-fetch-"));
  const tools = fetchTools({ config, home, userAgent: () => userAgent, quiet: async () => {} });
  try {
    return await work(tools);
  } finally {
    closeTools(tools);
    rmSync(home, { recursive: true, force: true });
  }
}

function configOf(options: SingleFetchOptions): FetchingConfig {
  const { config, resolver, proxy, allowRange } = options;
  return fetchingConfig({
    ...(config === undefined ? {} : readSettingsFile(config)),
    ...(resolver === undefined ? {} : { resolvers: resolver }),
    ...(proxy === undefined ? {} : { proxy }),
    ...(allowRange === undefined ? {} : { allowRanges: allowRange }),
  });
}

/** A manual fetch has no coordinator that sets a User-Agent. */
function statedUserAgent(text = `Nearcrawl/${softwareVersion} (+https://nearcrawl.invalid/about)`): string {
  if (userAgent.safeParse(text).success) return text;
  throw new UsageError(
    `--user-agent ${text.slice(0, 100)}: must begin with Nearcrawl/ and be up to 200 printable ASCII characters`,
  );
}

// Shows a fetched page to people: each hop's decisions and timings, the content, and the result as it would be sent.

/** The URL gave no page, so the command ends with exit code 1. */
export class NoPageError extends NearcrawlError {
  readonly code = "NC_NO_PAGE";

  constructor(result: Pick<FetchResult, "url" | "outcome">) {
    super(`${printable(result.url)} gives no page: ${outcomeWords(result.outcome)}`);
  }
}

export function fetchText({ hops, ending, shipped }: FetchAnswer): string {
  const page = hops.at(-1)?.result.page ?? null;
  const parts = hops.map(hopText);
  if (ending !== null) parts.push(`given up: ${printable(ending)}`);
  if (page !== null) parts.push(pageText(page));
  if (shipped !== null) {
    const times =
      shipped.times === null || shipped.times < 1 ? "" : `, 1/${shipped.times.toFixed(1)} of the page's HTML`;
    parts.push(`would ship ${shipped.shippedBytes} bytes, alone in its session${times}`);
  }
  return parts.join("\n\n");
}

function hopText(hop: FollowedHop): string {
  const { result } = hop;
  const facts: readonly (readonly [name: string, fact: string | null])[] = [
    ["robots", robotsWords(hop)],
    ["address", result.address === null ? null : `${result.address}${connectionWords(result)}`],
    ["time", timeWords(result.timing, hop.tookMs)],
    ["outcome", outcomeWords(result.outcome)],
    ["bytes", result.wireBytes === 0 ? null : `${result.wireBytes} on the wire, ${result.bodyBytes} decoded`],
    ["etag", result.etag],
    ["modified", result.lastModified],
    ["price", priceWords(result)],
    ...statedFacts(result.preferences ?? []),
    ["next", `this host may be asked again after ${milliseconds(result.hostDelayMs)}`],
  ];
  const lines = facts.flatMap(([name, fact]) => (fact ? [`  ${name.padEnd(10)}${printable(fact)}`] : []));
  return [printable(hop.url), ...lines].join("\n");
}

function priceWords({ outcome }: FetchResult): string | null {
  return outcome.type === "http-error" && outcome.price !== undefined
    ? `${outcome.price} for the page`
    : null;
}

function robotsWords({ robots, crawlDelaySeconds, result }: FollowedHop): string {
  const delay = crawlDelaySeconds === null ? "" : `, Crawl-delay ${crawlDelaySeconds} s`;
  const sitemaps = result.robots?.sitemaps.length ?? 0;
  const named = sitemaps === 0 ? "" : `, ${sitemaps} ${sitemaps === 1 ? "sitemap" : "sitemaps"}`;
  if (robots === null) return "could not be had, so nothing is fetched";
  const verdict = robots.allowed ? "allowed" : "FORBIDDEN";
  return `${verdict}${robots.rule === null ? "" : ` by ${robots.rule}`}${delay}${named}`;
}

function connectionWords({ connection }: FetchResult): string {
  if (connection === undefined) return "";
  const tls = connection.tls === null ? "without TLS" : `${connection.tls}, certificate verified`;
  return `, HTTP/${connection.http}, ${tls}`;
}

function timeWords(timing: FetchTiming, tookMs: number): string {
  const phases = [
    ["DNS", timing.dnsMs],
    ["connect", timing.connectMs],
    ["TLS", timing.tlsMs],
    ["first byte", timing.firstByteMs],
  ] as const;
  const known = phases.flatMap(([name, ms]) => (ms === null ? [] : [`${name} ${milliseconds(ms)}`]));
  return [
    ...known,
    `request ${milliseconds(timing.totalMs)}`,
    `with robots and waiting ${milliseconds(tookMs)}`,
  ].join(", ");
}

const milliseconds = (ms: number) =>
  ms < 10_000 ? `${Math.round(ms * 10) / 10} ms` : `${Math.round(ms / 1000)} s`;

function outcomeWords(outcome: FetchOutcome): string {
  switch (outcome.type) {
    case "fetched":
      return `${outcome.status}, a page${outcome.truncated ? ", cut at the size limit" : ""}`;
    case "unchanged":
      return `${outcome.status}, unchanged`;
    case "redirected":
      return `${outcome.status}, redirected to ${outcome.location}`;
    case "http-error": {
      const again = outcome.retryAfterSeconds;
      return `${outcome.status}${again === null ? "" : `, to be asked again after ${again} s`}`;
    }
    case "refused-by-robots":
      return `not asked for: ${outcome.rule || "robots.txt forbids it"}`;
    case "refused-address":
      return `not contacted: ${outcome.address} is ${outcome.block}`;
    case "unsupported":
      return `${outcome.status}, content type ${outcome.contentType || "unknown"} is not read`;
    case "failed":
      return `failed (${outcome.code}, blame: ${outcome.blame}): ${outcome.reason}`;
  }
}

// Shows the extracted page to people: its facts, then its first headings and links.

const shownLinks = 20;
const shownHeadings = 8;
const shownCharacters = 600;

export function pageText(page: PageExtract): string {
  const { links, headings, foreignLinks = [], text, unquoted, ...facts } = page;
  const counts = { linksInAll: links.length, foreignLinks: foreignLinks.length || null };
  const startOf = (lines: string) => lines.slice(0, shownCharacters).replaceAll("\n", " ");
  const shown = {
    text: startOf(text),
    ...(unquoted !== undefined && { searchedOnly: startOf(unquoted) }),
    headings: headings.slice(0, shownHeadings),
    links: links.slice(0, shownLinks),
  };
  return answerText(
    { ...facts, ...counts, ...shown },
    { headings: "level text", links: "url anchor nofollow" },
  );
}

export interface FetchAnswer {
  /** Each URL requested, with the verdict of robots.txt, the timings and the result as it would be sent. */
  readonly hops: readonly FollowedHop[];
  /** Why the fetch ended without a page, or null. */
  readonly ending: string | null;
  /** The size of the last hop's result. */
  readonly shipped: ShippedSize | null;
}

// The size of a result on the wire when it is the first of a session, without earlier data to refer to.

export interface ShippedSize {
  readonly shippedBytes: number;
  /** How many times smaller the result is than the page's HTML. Null if there is no page. */
  readonly times: number | null;
}

// Reads a document from a file or standard input, up to the crawler's limit.

interface Input {
  readonly bytes: Buffer;
  /** True when the input was longer. */
  readonly cut: boolean;
}

/** Reads at most `mostBytes`. `-` means standard input. Throws a UsageError that names the file. */
export function readInput(source: string, mostBytes: number): Input {
  let descriptor: number | null = null;
  try {
    descriptor = source === "-" ? 0 : openSync(source, "r");
    return readBounded(descriptor, mostBytes);
  } catch (error) {
    throw new UsageError(`${source}: ${error instanceof Error ? error.message : String(error)}`);
  } finally {
    if (descriptor !== null && descriptor !== 0) closeSync(descriptor);
  }
}

function readBounded(descriptor: number, mostBytes: number): Input {
  const bytes = Buffer.alloc(mostBytes + 1);
  let length = 0;
  while (length < bytes.length) {
    const read = readPiece(descriptor, bytes, length);
    if (read === 0) break;
    length += read;
  }
  return { bytes: Buffer.from(bytes.subarray(0, Math.min(length, mostBytes))), cut: length > mostBytes };
}

/** Returns 0 at the end. A pipe without data may report EAGAIN, and a closed one EOF (Windows). */
function readPiece(descriptor: number, bytes: Buffer, at: number): number {
  for (;;) {
    try {
      return readSync(descriptor, bytes, at, bytes.length - at, null);
    } catch (error) {
      const { code } = error as { code?: string };
      if (code === "EOF") return 0;
      if (code !== "EAGAIN") throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 20);
    }
  }
}

// A site's statements on how a page may be used, as lines for people.

/** Each statement and the combined answer, as named lines. Returns an empty list when there are no statements. */
export function statedFacts(stated: readonly StatedPreference[]): (readonly [name: string, fact: string])[] {
  if (stated.length === 0) return [];
  const lines = statementLines(stated).map((line) => ["states", printable(line, 400)] as const);
  return [...lines, ["for us", forUsWords(useAnswers(stated))]];
}

/** Example: `search: denied; ai-train: denied`, followed by the consequence for searches. */
export function forUsWords(answers: UseAnswers): string {
  const { search } = answers;
  if (search === undefined) return `search: not stated, and so allowed; ${answersWords(answers)}`;
  const means = search === "allowed" ? "" : " (the page is not indexed; its links are followed)";
  return `${answersWords(answers)}${means}`;
}
