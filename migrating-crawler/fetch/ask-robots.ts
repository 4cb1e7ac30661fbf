/**
 * Fetches an origin's robots.txt (RFC 9309 section 2.3.1), following up to five redirects, even to other hosts. 4xx means no
 * rules. 5xx, 429, no answer, or a bot gate's challenge forbid everything. Each request of the chain waits for its host's turn
 * and passes the address guard.
 *
 * The RFC leaves open whose rules apply to a redirect's target. Section 2.2.2 exempts only /robots.txt, so for any other path
 * of another origin, that origin's rules are read first. Otherwise, the owner of A could make the crawler fetch what B
 * forbids. Results are cached under the final URL, so that a thousand hosts redirecting to one file cost its owner one request
 * a day.
 */
import { retryAfterSeconds } from "#core/foreign-dates";
import { canParseUrl, withoutUser } from "#core/ip/url-host";
import type { Challenge } from "#protocol/bot-gate";
import type { OtherReading } from "#protocol/result";
import { Failure, failureOf } from "../core/failure.ts";
import { isGzip } from "../extract/unpack-gzip.ts";
import { answerOfFailure, type HostAnswer } from "../limits/host-pace.ts";
import type { Connector } from "../net/connector.ts";
import { gateFailure, gateInBody, gateInHeaders, mayBeGate, mostGateBytes } from "./bot-gate.ts";
import { codingsOf, decodeBody } from "./content-codings.ts";
import { headBytes, type SiteAnswer, type TakeBytes } from "./exchange.ts";
import {
  maxRobotsBytes,
  parseRobots,
  type RobotsRules,
  robotsDifference,
  robotsVerdict,
} from "./robots-rules.ts";
import { noUses } from "./robots-uses.ts";
import type { SignRequest } from "./sign-request.ts";
import { SiteClient, type Timeouts } from "./site-client.ts";
import { isReadable } from "./wanted-type.ts";

const productToken = "Nearcrawl";
const maxRedirects = 5;

export type RobotsAnswer =
  /** The rules that were read, or none if the file does not exist (everything is allowed). */
  | {
      readonly type: "rules" | "none";
      readonly rules: RobotsRules;
      readonly difference?: OtherReading | undefined;
    }
  /** A 5xx or 429 answer forbids everything. */
  | { readonly type: "closed"; readonly why: string }
  /** If there is no answer, or a bot gate answers, nothing can be fetched. */
  | { readonly type: "unreachable"; readonly failure: Failure };

/** Waits for the host's turn. The returned function must be called with the outcome, or with null if nothing was sent. */
export type TakeTurn = (client: SiteClient) => Promise<(answer: HostAnswer | null) => void>;

/** A TakeTurn throws this if there is no turn in time, so that robots.txt stays unknown. */
export class NoTurn extends Error {}

export interface RobotsAsking {
  readonly connector: Connector;
  readonly timeouts: Timeouts;
  readonly userAgent: () => string;
  readonly take: TakeBytes;
  readonly sign?: SignRequest | undefined;
  /** The agent whose rules are wanted. Default: this crawler's. */
  readonly agent?: string;
  readonly onFile?: (file: Buffer) => void;
}

/** The cache key is an origin for its /robots.txt, or the full URL of a redirect's target. */
export interface RobotsMemory {
  get(place: string): RobotsAnswer | null;
  set(place: string, answer: RobotsAnswer): void;
  /** Whether a host may be asked again for something other than its own /robots.txt. If so, the request is counted. */
  mayAskElsewhere(host: string): boolean;
}

/** Throws only what `takeTurn` throws. */
export async function askRobots(
  client: SiteClient,
  asking: RobotsAsking & { readonly memory: RobotsMemory },
  takeTurn: TakeTurn,
): Promise<RobotsAnswer> {
  const chain = { ...asking, client, takeTurn, redirectsLeft: maxRedirects };
  const answer = await answerAt(new URL("/robots.txt", client.origin), client.origin, chain);
  if (answer !== tooManyRedirects) return answer;
  asking.memory.set(client.origin, noRules);
  return noRules;
}

/** The state of one chain of up to five redirects, which takes at most eleven requests. */
interface Chain extends RobotsAsking {
  readonly memory: RobotsMemory;
  readonly client: SiteClient;
  readonly takeTurn: TakeTurn;
  redirectsLeft: number;
}

const noRules: RobotsAnswer = {
  type: "none",
  rules: { rules: [], crawlDelaySeconds: null, sitemaps: [], agents: [], cut: false, uses: noUses },
};

/** This result applies to the chain alone and is not cached, because places along the chain may be nearer to their own file. */
const tooManyRedirects: RobotsAnswer = {
  type: "closed",
  why: "robots.txt leads from one redirect to the next",
};

/** `owner` is the origin whose own robots.txt led here. */
async function answerAt(url: URL, owner: string, chain: Chain): Promise<RobotsAnswer> {
  const { memory } = chain;
  const isRobotsFile = url.pathname === "/robots.txt" && url.search === "";
  const place = isRobotsFile ? url.origin : url.href;
  const known = memory.get(place);
  if (known !== null) return known;
  const held = isRobotsFile || url.origin === owner ? null : await forbidden(url, chain);
  if (held !== null) return held;
  const step = await oneStep(url, place, chain);
  if (step.type !== "redirect") return remembered(memory, place, step);
  if (!canParseUrl(step.location, url.href)) return remembered(memory, place, noRules);
  const next = new URL(step.location, url);
  if (next.protocol !== "http:" && next.protocol !== "https:") return remembered(memory, place, noRules);
  if (chain.redirectsLeft-- === 0) return tooManyRedirects;
  return remembered(memory, place, await answerAt(next, isRobotsFile ? url.origin : owner, chain));
}

function remembered(memory: RobotsMemory, place: string, answer: RobotsAnswer): RobotsAnswer {
  // A limit of this crawler says nothing about the site.
  const isOurs = answer.type === "unreachable" && answer.failure.code === "held-back";
  if (answer !== tooManyRedirects && !isOurs) memory.set(place, answer);
  return answer;
}

/** Returns why another origin's URL may not be fetched. Otherwise counts the request and returns null. */
async function forbidden(url: URL, chain: Chain): Promise<RobotsAnswer | null> {
  const theirs = await answerAt(new URL("/robots.txt", url), url.origin, chain);
  if (theirs.type === "closed" || theirs.type === "unreachable") return theirs;
  const leads = `robots.txt leads to ${withoutUser(url.href).slice(0, 200)}`;
  if (!robotsVerdict(theirs.rules, url.pathname + url.search).allowed)
    return { type: "closed", why: `${leads}, which the robots.txt of that host forbids` };
  if (chain.memory.mayAskElsewhere(url.hostname)) return null;
  return {
    type: "closed",
    why: `${leads}, as too many others do: that host is asked for no more of them today`,
  };
}

type Step = RobotsAnswer | { readonly type: "redirect"; readonly location: string };

async function oneStep(url: URL, place: string, chain: Chain): Promise<Step> {
  const { client, connector, timeouts, sign, takeTurn, memory } = chain;
  const isHere = url.origin === client.origin;
  const asked = isHere ? client : new SiteClient({ origin: url.origin, connector, timeouts, sign });
  try {
    const endTurn = await takeTurn(asked);
    // Another slice may have fetched the file while this one waited for its turn.
    const known = memory.get(place);
    if (known !== null) {
      endTurn(null);
      return known;
    }
    // The host's pace treats every 5xx like a 503, so that robots.txt is fetched again after the back-off.
    const read = await askSmallFile(asked, fileAt(url, chain), (met) =>
      endTurn((met?.status ?? 0) >= 500 ? { ...met!, status: 503 } : met),
    );
    return read instanceof Failure ? { type: "unreachable", failure: read } : stepOf(read, url, chain);
  } finally {
    if (!isHere) await asked.close();
  }
}

const fileAt = (url: URL, { userAgent, take }: RobotsAsking): SmallFile => ({
  ...{ path: url.pathname + url.search, accept: "text/plain,*/*;q=0.5", of: "robots", userAgent, take },
  read: async (answer) =>
    answer.status >= 200 && answer.status < 300 ? await readPacked(answer, maxRobotsBytes + 1, take) : null,
});

function stepOf({ status, bytes, location }: SmallAnswer, url: URL, asking: RobotsAsking): Step {
  if (bytes !== null) {
    const { agent = productToken } = asking;
    const rules = parseRobots(bytes, agent);
    asking.onFile?.(bytes);
    return {
      type: "rules",
      rules,
      difference: robotsDifference({ file: bytes, origin: url.origin, agent }, rules),
    };
  }
  if (location !== null) return { type: "redirect", location };
  if (status < 500 && status !== 429) return noRules;
  return { type: "closed", why: `robots.txt was answered with ${status}, which forbids everything` };
}

interface SmallFile {
  readonly path: string;
  readonly accept: string;
  readonly of: Challenge["of"];
  readonly userAgent: () => string;
  readonly take: TakeBytes;
  /** Returns null if the status means that the answer is not the file. */
  readonly read: (answer: SiteAnswer) => Promise<{ readonly bytes: Buffer } | null>;
}

interface SmallAnswer {
  readonly status: number;
  readonly bytes: Buffer | null;
  readonly location: string | null;
}

/** Must be called within the turn, which `endTurn` ends. */
export async function askSmallFile(
  client: SiteClient,
  file: SmallFile,
  endTurn: Awaited<ReturnType<TakeTurn>>,
): Promise<SmallAnswer | Failure> {
  const startedMs = performance.now();
  const read = await readSmallFile(client, file).catch(failureOf);
  const tookMs = performance.now() - startedMs;
  if (read instanceof Failure) endTurn(answerOfFailure(read.code, tookMs));
  else endTurn({ status: read.status, retryAfterSeconds: read.retryAfterSeconds, tookMs, isSmall: true });
  return read;
}

async function readSmallFile(
  client: SiteClient,
  { path, accept, of, userAgent, take, read }: SmallFile,
): Promise<SmallAnswer & { readonly retryAfterSeconds: number | null }> {
  const sent = { "user-agent": userAgent(), accept, "accept-encoding": "gzip, deflate, br" };
  const answer = await client.get({ path, headers: sent });
  await throwGateInHeader(answer, of, take);
  const { status, headers } = answer;
  const bytes = (await read(answer))?.bytes ?? null;
  const provider = bytes === null ? null : gateInBody(bytes, answer, of).provider;
  if (provider !== null) throw gateFailure(provider, of, status);
  if (bytes === null) await dropUnlessGate(answer, of, take);
  const location = status >= 300 && status < 400 ? ([headers.location ?? []].flat()[0] ?? null) : null;
  const waits = retryAfterSeconds(headers["retry-after"], new Date());
  return { status, bytes, location, retryAfterSeconds: waits };
}

// Reads a response body within limits on the wire and after decoding. A larger body is cut and marked as such. A body with a
// broken coding fails as a whole.

export type { TakeBytes };

/** Maximum kept of a body, both on the wire and decoded. 99.9 % of real pages are smaller. */
export const maxBodyBytes = 5 * 1024 * 1024;

interface Body {
  readonly bytes: Buffer;
  readonly wireBytes: number;
  readonly truncated: boolean;
}

interface BodyBounds {
  readonly limit: number;
  readonly take: TakeBytes;
  /** Is called with the first bytes of an unencoded body. Returning false stops the reading. */
  readonly wants?: (head: Buffer) => boolean;
}

/** Also unpacks gzip that the header does not announce. */
async function readPacked(
  answer: SiteAnswer,
  limit: number,
  take: TakeBytes,
): Promise<{ readonly bytes: Buffer }> {
  const { bytes, truncated } = (await readWantedBody(answer, { limit, take }))!;
  return isGzip(bytes) ? decodeBody("gzip", { bytes, cut: truncated, limit }) : { bytes };
}

/** Returns at most `limit` decoded bytes, or null if the first ones were not wanted. Throws a Failure. */
export async function readWantedBody(
  answer: SiteAnswer,
  { limit, take, wants }: BodyBounds,
): Promise<Body | null> {
  const { codings, unknown } = await codingsOrDrop(answer, take);
  const isLegible = (head: Buffer) => unknown === null || isReadable(head);
  const isWanted = (head: Buffer) => isLegible(head) && wants?.(head) !== false;
  const wire = await answer.read({ limit, take, wants: codings.length === 0 ? isWanted : undefined });
  let { bytes, truncated } = wire;
  for (const coding of codings.reverse()) {
    const decoded = await decodeBody(coding, { bytes, cut: truncated, limit });
    ({ bytes, truncated } = decoded);
  }
  if (!isLegible(bytes.subarray(0, headBytes)))
    throw new Failure("bad-encoding", `content coding ${unknown?.slice(0, 40)} was not asked for`);
  return wire.unwanted ? null : { bytes, truncated, wireBytes: wire.bytes.length };
}

async function codingsOrDrop(answer: SiteAnswer, take: TakeBytes): Promise<ReturnType<typeof codingsOf>> {
  try {
    return codingsOf(answer.headers["content-encoding"]);
  } catch (error) {
    await answer.drop(take);
    throw error;
  }
}

/** Drops an error's body. If the body is a bot gate's, throws a Failure. */
export async function dropUnlessGate(
  answer: SiteAnswer,
  of: Challenge["of"],
  take: TakeBytes,
): Promise<void> {
  const announced = Number(answer.headers["content-length"] ?? 0);
  if (!mayBeGate(answer) || announced > mostGateBytes) return void (await answer.drop(take));
  const body = await readWantedBody(answer, { limit: mostGateBytes, take }).catch(() => null);
  if (body === null || body.truncated) return;
  const { provider } = gateInBody(body.bytes, answer, of);
  if (provider !== null) throw gateFailure(provider, of, answer.status);
}

export async function throwGateInHeader(
  answer: SiteAnswer,
  of: Challenge["of"],
  take: TakeBytes,
): Promise<void> {
  const provider = gateInHeaders(answer);
  if (provider === null) return;
  await answer.drop(take);
  throw gateFailure(provider, of, answer.status);
}
