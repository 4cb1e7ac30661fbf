/**
 * Crawls one leased host slice: its URLs one after another at the host's pace, as long as the lease, limits, spool and host
 * allow. Each processed URL has one result. The remaining URLs are returned with the reason.
 */
import { randomInt } from "node:crypto";
import { canParseUrl, urlHost } from "#core/ip/url-host";
import { unknownGate } from "#protocol/bot-gate";
import { maxMilliseconds } from "#protocol/fields";
import type { Lease } from "#protocol/lease";
import { maySearch, type StatedPreference } from "#protocol/preferences";
import type { FetchResult, HostPaceReport, PageExtract, RobotsReport } from "#protocol/result";
import { Failure, type FailureCode, failureOf } from "../core/failure.ts";
import { steadyNowMs } from "../core/local-time.ts";
import { type Extracted, extractPage, type FetchedBody } from "../extract/extract-page.ts";
import type { ExtractPage } from "../extract/extraction-pool.ts";
import { NoTurn, type TakeTurn } from "../fetch/ask-robots.ts";
import { gateFailure } from "../fetch/bot-gate.ts";
import {
  type FetchedPage,
  fetchPage,
  outcomeOfFailure,
  type PageRequest,
  type PageResult,
} from "../fetch/fetch-page.ts";
import type { OriginRobots, RobotsCache } from "../fetch/robots.ts";
import type { SiteClient } from "../fetch/site-client.ts";
import type { TdmFiles } from "../fetch/tdm-files.ts";
import { answerOfFailure, type HostAnswer, isFinalFailure } from "../limits/host-pace.ts";
import type { MissingAnswer, SiteMemory } from "../traps/site-memory.ts";
import { headType, type LinkType, withLinkTypes } from "./link-types.ts";
import { SiteVisit, type VisitTools } from "./site-visit.ts";

export interface SliceTools extends VisitTools {
  readonly robots: RobotsCache;
  readonly tdm: TdmFiles;
  readonly memory: SiteMemory;
  readonly userAgent: () => string;
  readonly quiet: () => Promise<void>;
  readonly extract?: ExtractPage;
  /** Returns false if there is no room for the result. */
  readonly keep: (leaseId: string, result: FetchResult) => boolean;
  readonly now: () => Date;
}

/** Null if every URL has a result. Otherwise, why the remaining URLs are returned. */
export type SliceEnding = string | null;

/** Work on a lease ends this long before it expires, so that the results arrive in time. */
const leaseMarginMs = 2000;

/** An unavailable robots.txt is fetched again after this time at the earliest. */
const robotsAgainMs = 60_000;

/** After this many consecutive requests without an answer, the slice ends. */
const mostFailures = 2;

/** A limit of the crawler's own host intervened, so this says nothing about the site. */
const heldBack = "held-back" satisfies FailureCode;

export async function crawlSlice(lease: Lease, tools: SliceTools, signal: AbortSignal): Promise<SliceEnding> {
  const { gates } = tools;
  if (!gates.enter(lease.host)) return "the host is still being crawled under an earlier lease";
  const endsAtMs = steadyNowMs() + lease.expiresInSeconds * 1000 - leaseMarginMs;
  const visit = new SiteVisit({ host: lease.host, tools, signal, endsAtMs });
  const news = new HostNews();
  const slice: Slice = {
    lease,
    tools,
    signal,
    visit,
    news,
    typed: new Set(),
    met: { answered: false, gates: 0 },
  };
  gates.notBefore(lease.host, steadyNowMs() + lease.waitMs);
  if (lease.pace) gates.learn(lease.host, lease.pace);
  try {
    for (const task of lease.urls) {
      const ending = await crawlOne(slice, task);
      if (ending !== null) return ending;
    }
    return null;
  } catch (error) {
    if (error instanceof NoTurn) return error.message;
    throw error;
  } finally {
    gates.leave(lease.host);
    await visit.close();
  }
}

interface Slice {
  readonly lease: Lease;
  readonly tools: SliceTools;
  readonly signal: AbortSignal;
  readonly visit: SiteVisit;
  readonly news: HostNews;
  readonly typed: Set<string>;
  /** `answered`: whether the host sent any content of its own. `gates`: how many consecutive challenges of a bot gate it sent. */
  readonly met: { answered: boolean; gates: number };
}

type Task = Lease["urls"][number];

async function crawlOne(slice: Slice, task: Task): Promise<SliceEnding> {
  const { lease, tools, visit } = slice;
  if (isStopped(slice, task.url)) return null;
  if (!belongsTo(task.url, lease.host)) return keep(slice, strayResult(task.url, tools.now()));
  const { origin, pathname, search } = new URL(task.url);
  let robots = usable(tools.robots.known(origin));
  if (robots?.type === "known") tools.gates.crawlDelayAtLeast(lease.host, robots.crawlDelaySeconds);
  if (robots === null) {
    const held = await visit.rest();
    if (held !== null) return held;
    robots = await askRobots(slice, visit.clientFor(origin));
  }
  if (!allows(robots, pathname + search)) return refuse(slice, task, robots);
  const held = (await askTdm(slice, origin, robots)) ?? (await visit.rest());
  return held ?? fetchOne(slice, task, robots);
}

/** Fetches the origin's tdmrep.json if it is worth a request. */
async function askTdm(slice: Slice, origin: string, robots: OriginRobots): Promise<SliceEnding> {
  const { lease, tools, visit } = slice;
  if (tools.tdm.known(origin) !== null) return null;
  const urls = lease.urls.filter(({ url }) => url.startsWith(`${origin}/`)).length;
  if (!tools.tdm.pays(urls)) return null;
  const held = await visit.rest();
  if (held !== null) return held;
  await tools.tdm.ask(visit.clientFor(origin), smallTurns(visit), (path) => allows(robots, path));
  return null;
}

function smallTurns(visit: SiteVisit): TakeTurn {
  return async (asked) => {
    const turn = await visit.turn(asked);
    return (answer) => void turn.end(answer);
  };
}

/** Accepts rules, and a failure that another request would not fix. */
function usable(robots: OriginRobots | null): OriginRobots | null {
  if (robots === null) return null;
  if (robots.type === "unreachable") return isFinalFailure(robots.failure.code) ? robots : null;
  return robots.closed === null ? robots : null;
}

async function askRobots(slice: Slice, client: SiteClient): Promise<OriginRobots> {
  const { lease, tools, visit } = slice;
  const robots = await tools.robots.of(client, smallTurns(visit));
  if (isHeldBack(robots)) throw new NoTurn(robots.failure.message);
  slice.news.robotsFound(robots.report);
  if (robots.type === "known" && robots.closed === null) {
    tools.gates.crawlDelay(lease.host, robots.crawlDelaySeconds);
  } else if (usable(robots) === null) {
    const againInMs = Math.max(robotsAgainMs, tools.gates.waitMs(lease.host, steadyNowMs()));
    tools.gates.notBefore(lease.host, steadyNowMs() + againInMs);
    tools.robots.notBefore(client.origin, Date.now() + againInMs);
  }
  return robots;
}

function isHeldBack(robots: OriginRobots): robots is Extract<OriginRobots, { type: "unreachable" }> {
  return robots.type === "unreachable" && robots.failure.code === heldBack;
}

function allows(robots: OriginRobots, path: string): boolean {
  return robots.type === "known" && robots.verdict(path).allowed;
}

/** Refuses the URL without contacting the host. If robots.txt itself is unavailable, the rest of the slice waits too. */
async function refuse(slice: Slice, task: Task, robots: OriginRobots): Promise<SliceEnding> {
  const { lease, tools, visit, signal } = slice;
  if (signal.aborted) return String(signal.reason);
  const client = visit.clientFor(new URL(task.url).origin);
  const refused = await fetchPage(task, { ...settingOf(tools), client, robots });
  const full = keep(slice, told(slice, refused.result, tools.gates.waitMs(lease.host, steadyNowMs())));
  if (full !== null || usable(robots) !== null) return full;
  const why = robots.type === "unreachable" ? robots.failure.message : robots.closed;
  return `robots.txt cannot be had, so nothing of the host is fetched for now: ${why}`;
}

async function fetchOne(slice: Slice, task: Task, robots: OriginRobots): Promise<SliceEnding> {
  const { lease, tools, signal } = slice;
  const asked = await request(slice, task, robots);
  const { waitMs } = asked;
  const result = await withoutShell(slice, task, asked, robots);
  const { outcome } = result;
  if (signal.aborted && outcome.type === "failed") return String(signal.reason);
  // An aborted request fetched nothing: its URL is returned unchanged. The host's pace has recorded the request.
  if (outcome.type === "failed" && outcome.code === heldBack) return outcome.reason;
  if (result.preferences !== undefined) await tools.recorder?.state(task.url, result.preferences);
  const judged = await judge(slice, result, robots);
  const typed = await tellTypes(slice, judged, robots);
  const { page, preferences } = typed;
  const allowed = page === null ? typed : { ...typed, page: withoutDeniedText(page, preferences) };
  const full = keep(
    slice,
    told(slice, allowed, Math.max(waitMs, tools.gates.waitMs(lease.host, steadyNowMs()))),
  );
  if (full !== null) return full;
  const gated = gateEnding(slice, outcome);
  if (gated !== null) return gated;
  const failures = tools.gates.failures(lease.host);
  if (failures < mostFailures || outcome.type !== "failed") return null;
  return `the host did not answer ${failures} times in a row: ${outcome.reason}`;
}

/**
 * Leaves a host behind a bot gate alone for as long as the coordinator says. If the site has already sent a page of its own,
 * the gate may cover only this URL, so one more URL is tried.
 */
function gateEnding({ met }: Slice, outcome: FetchResult["outcome"]): SliceEnding {
  if (outcome.type !== "failed" || !isChallenge(outcome)) {
    met.answered ||= outcome.type !== "failed";
    met.gates = 0;
    return null;
  }
  met.gates += 1;
  if (met.answered && met.gates < 2) return null;
  return `the host is left alone: ${outcome.reason}`;
}

const isChallenge = (outcome: FetchResult["outcome"]): boolean =>
  outcome.type === "failed" && outcome.challenge !== undefined;

interface AskedPage {
  readonly result: PageResult;
  readonly waitMs: number;
  readonly shell: string | null;
}

/**
 * If an indexed page has become a mere script, compares it with the answer for a page that cannot exist. If they are equal,
 * something intercepts every request.
 */
async function withoutShell(
  slice: Slice,
  task: Task,
  { result, shell }: AskedPage,
  robots: OriginRobots,
): Promise<PageResult> {
  if (shell === null || task.digest === undefined || result.outcome.type !== "fetched") return result;
  const missing = new URL(`/no-such-page-${randomInt(1e9, 1e10)}`, task.url);
  const other = await askInTurn(slice, missing, robots);
  if (other === null || other.shell !== shell) return result;
  const outcome = outcomeOfFailure(gateFailure(unknownGate, "page", result.outcome.status));
  return { ...result, outcome, etag: null, lastModified: null, page: null };
}

/**
 * Waits for its turn, makes one request, and returns how long the host wants to rest. The turn ends with the last byte, before
 * extraction.
 */
async function request(slice: Slice, asked: PageRequest, robots: OriginRobots): Promise<AskedPage> {
  const { tools, visit } = slice;
  const client = visit.clientFor(new URL(asked.url).origin);
  const turn = await visit.turn(client);
  let answer: HostAnswer | null = null;
  let waitMs = 0;
  let fetched: FetchedPage;
  let release = () => {};
  try {
    const setting = { ...settingOf(tools), take: turn.take, client, robots, tdm: tdmOf(tools, asked.url) };
    fetched = await fetchPage(asked, setting);
    answer = answerOf(fetched);
    if (fetched.body !== null) release = tools.governor.holdPage();
  } finally {
    waitMs = turn.end(answer);
  }
  const { extract = extractPage, quiet } = tools;
  const result = await extractedResult(fetched, { extract, quiet });
  release();
  return { result, waitMs, shell: fetched.shell };
}

function tdmOf({ tdm }: SliceTools, url: string): StatedPreference[] {
  const { origin, pathname, search } = new URL(url);
  return tdm.known(origin)?.stated(pathname + search) ?? [];
}

async function judge(slice: Slice, result: PageResult, robots: OriginRobots): Promise<PageResult> {
  const { page, url } = result;
  if (page === null) return result;
  const ask = (path: string) => askForMissing(slice, new URL(path, url), robots);
  const judged = await slice.tools.memory.judge(page, { url, nowMs: Date.now(), ask });
  return { ...result, page: judged };
}

/** Returns the host's answer for a page that cannot exist. An answer of a bot gate does not count. */
async function askForMissing(slice: Slice, url: URL, robots: OriginRobots): Promise<MissingAnswer> {
  if (!allows(robots, url.pathname)) return { type: "no-page" };
  const asked = await askInTurn(slice, url, robots);
  if (asked === null || isChallenge(asked.result.outcome)) return { type: "not-asked" };
  const { page } = asked.result;
  return page === null ? { type: "no-page" } : { type: "page", page };
}

/** Makes an ordinary request in its own turn. Returns null if there is no turn or robots.txt forbids the URL. */
async function askInTurn(slice: Slice, url: URL, robots: OriginRobots): Promise<AskedPage | null> {
  if (!allows(robots, url.pathname) || (await slice.visit.rest()) !== null) return null;
  try {
    return await request(slice, { url: url.href, etag: null, lastModified: null }, robots);
  } catch (error) {
    if (error instanceof NoTurn) return null;
    throw error;
  }
}

/** Adds the types of links that no crawler reads, if the lease asks for them. */
async function tellTypes(slice: Slice, result: PageResult, robots: OriginRobots): Promise<PageResult> {
  const { page, url } = result;
  const { linkTypeChecks: most = 0 } = slice.lease;
  const isPage = page !== null && (page.kind ?? "page") === "page";
  if (most === 0 || !isPage || page.robots.nofollow) return result;
  const ask = async (link: URL) => await askType(slice, link, robots);
  const links = await withLinkTypes(page.links, { page: url, most, asked: slice.typed, ask });
  return { ...result, page: { ...page, links } };
}

async function askType(slice: Slice, url: URL, robots: OriginRobots): Promise<LinkType> {
  const { tools, visit } = slice;
  if (isStopped(slice, url.href)) return "readable";
  if (!allows(robots, url.pathname + url.search)) return "readable";
  if ((await visit.rest()) !== null) return "stop";
  try {
    const client = visit.clientFor(url.origin);
    const turn = await visit.turn(client);
    const { type, answer } = await headType(client, url, { ...settingOf(tools), take: turn.take });
    turn.end(answer);
    return type;
  } catch (error) {
    if (error instanceof NoTurn) return "stop";
    throw error;
  }
}

/** Returns null if the host was not asked. */
function answerOf({ result, status, tookMs, retryAfterSeconds, contacted }: FetchedPage): HostAnswer | null {
  const { outcome } = result;
  if (!contacted || outcome.type === "refused-address") return null;
  if (status === null && outcome.type === "failed") return answerOfFailure(outcome.code, tookMs);
  return { status: status ?? 0, tookMs, retryAfterSeconds };
}

function settingOf({ userAgent, governor, now }: SliceTools) {
  return { userAgent: userAgent(), take: (bytes: number) => governor.takeBytes(bytes), now };
}

function told({ lease, tools, visit, news }: Slice, result: PageResult, waitMs: number): FetchResult {
  const pace = tools.gates.report(lease.host);
  return news.tell(result, { waitMs, pace, tellResolved: () => visit.tellResolved() });
}

/** True if the coordinator has removed the URL from the lease. */
function isStopped({ lease, tools }: Slice, url: string): boolean {
  return tools.connector.stoppedSites.isStopped(url, lease.host, steadyNowMs());
}

/** If a URL was stopped while it was being fetched, its result is dropped. */
function keep(slice: Slice, result: FetchResult): SliceEnding {
  if (isStopped(slice, result.url)) return null;
  return slice.tools.keep(slice.lease.leaseId, result) ? null : "the spool is full";
}

function belongsTo(url: string, host: string): boolean {
  return canParseUrl(url) && /^https?:$/.test(new URL(url).protocol) && urlHost(url) === host;
}

function strayResult(url: string, now: Date): FetchResult {
  return {
    url,
    fetchedAt: now.toISOString(),
    outcome: outcomeOfFailure(new Failure("internal", "the URL is not one of the lease's host")),
    address: null,
    timing: { dnsMs: null, connectMs: null, tlsMs: null, firstByteMs: null, totalMs: 0 },
    wireBytes: 0,
    bodyBytes: 0,
    etag: null,
    lastModified: null,
    hostDelayMs: 0,
    page: null,
  };
}

// Builds the result of a fetched page. No contact is needed for that, so the turn has already ended and other hosts at the
// address are asked meanwhile. Never throws.

interface Extraction {
  readonly extract: (body: FetchedBody) => Promise<Extracted>;
  /** Resolves when long computations may run, because probes need the processor undisturbed. */
  readonly quiet: () => Promise<void>;
}

/** A failed extraction counts as this software's failure, since the site answered well. */
async function extractedResult(
  { result, body, needsScripts }: Pick<FetchedPage, "result" | "body" | "needsScripts">,
  { extract, quiet }: Extraction,
): Promise<PageResult> {
  if (body === null) return result;
  try {
    const { page: read, cut, stated, difference } = await extract({ ...body, quiet });
    const isEmpty = needsScripts && (read.kind ?? "page") === "page";
    const page: PageExtract = isEmpty ? { ...read, needsScripts: true } : read;
    const preferences = stated.length === 0 ? {} : { preferences: [...stated] };
    return { ...result, outcome: withCut(result.outcome, cut), ...preferences, difference, page };
  } catch (error) {
    return { ...result, outcome: outcomeOfFailure(failureOf(error)) };
  }
}

function withCut(outcome: PageResult["outcome"], cut: boolean): PageResult["outcome"] {
  return cut && outcome.type === "fetched" ? { ...outcome, truncated: true } : outcome;
}

/**
 * The result of a noindex page contains its link targets but no text. If the site denies use for search, anchors and the
 * titles in a feed are removed too, because they would be searched as text of other pages.
 */
export function withoutDeniedText(page: PageExtract, stated: readonly StatedPreference[] = []): PageExtract {
  const links = maySearch(stated) ? page.links : page.links.map((link) => ({ ...link, anchor: "" }));
  if (!page.robots.noindex || (page.kind ?? "page") !== "page") return { ...page, links };
  const { structured: _, ...rest } = page;
  return { ...rest, title: "", description: "", headings: [], links };
}

// Reports each fact about a host once, with the slice's results: the outcome of its robots.txt, its pace and its DNS time.

interface HostState {
  readonly waitMs: number;
  readonly pace: HostPaceReport | null;
  /** The DNS time, or null if a result has already reported it. */
  readonly tellResolved: () => number | null;
}

class HostNews {
  #robots: RobotsReport | null = null;
  #toldPace: HostPaceReport | null = null;

  robotsFound(report: RobotsReport | null): void {
    this.#robots = report ?? this.#robots;
  }

  tell(result: Omit<FetchResult, "hostDelayMs">, { waitMs, pace, tellResolved }: HostState): FetchResult {
    const robots = this.#robots;
    this.#robots = null;
    const news = newsOf(pace, this.#toldPace);
    this.#toldPace = news ?? this.#toldPace;
    const { timing } = result;
    const dnsMs = timing.connectMs === null ? timing.dnsMs : (timing.dnsMs ?? tellResolved());
    return {
      ...result,
      timing: { ...timing, dnsMs },
      hostDelayMs: Math.min(maxMilliseconds, Math.max(0, Math.ceil(waitMs))),
      ...(news === null ? {} : { pace: news }),
      ...(robots === null ? {} : { robots }),
    };
  }
}

/** A pace is reported again if a demand of robots.txt or the host changed, or the usual time or rate by a quarter. */
function newsOf(pace: HostPaceReport | null, last: HostPaceReport | null): HostPaceReport | null {
  if (pace === null || last === null) return pace;
  const sameDemands = pace.crawlDelayMs === last.crawlDelayMs && pace.backOffMs === last.backOffMs;
  const [rate, lastRate] = [pace.tolerated, last.tolerated];
  const sameLimit =
    rate?.limitedBy === lastRate?.limitedBy && rate?.refusedPerHour === lastRate?.refusedPerHour;
  const isSame =
    sameDemands &&
    sameLimit &&
    isNear(pace.usualMs, last.usualMs) &&
    isNear(rate?.perHour ?? 0, lastRate?.perHour ?? 0);
  return isSame ? null : pace;
}

const isNear = (value: number, last: number) => Math.abs(value - last) * 4 <= last;
