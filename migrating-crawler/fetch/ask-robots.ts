/**
 * Asks an origin for its robots.txt as RFC 9309 section 2.3.1 says: redirects are followed five times, to other
 * hosts too; 4xx stands for no rules at all; 5xx, 429, no answer and a bot gate's challenge forbid everything. Every request of the chain
 * waits for its host's turn and is checked by the address guard like any other.
 *
 * The RFC does not say whose rules hold for the place that a redirect leads to. Section 2.2.2 exempts nothing but
 * /robots.txt itself, so another origin's rules are asked first for any other path there: otherwise whoever owns A could
 * have us fetch what B forbids. What is read elsewhere is remembered under its own URL, so that a thousand hosts that
 * lead to one file cost its owner one request a day.
 */

import { retryAfterSeconds } from "#core/foreign-dates";
import { canParseUrl, withoutUser } from "#core/ip/url-host";
import type { Challenge } from "#protocol/bot-gate";
import type { OtherReading } from "#protocol/result";
import { Failure, failureOf } from "../core/failure.ts";
import { isGzip } from "../extract/unpack-gzip.ts";
import { answerOfFailure, type HostAnswer } from "../limits/request-outcome.ts";
import type { Connector } from "../net/connector.ts";
import { gateFailure, gateInBody, gateInHeaders, mayBeGate, mostGateBytes } from "./bot-gate.ts";
import { codingsOf, decodeBody } from "./content-codings.ts";
import { headBytes, type SiteAnswer, type TakeBytes } from "./exchange.ts";
import { maxRobotsBytes, parseRobots, type RobotsRules, robotsVerdict } from "./robots-rules.ts";
import { robotsDifference } from "./robots-second-opinion.ts";
import { noUses } from "./robots-uses.ts";
import type { SignRequest } from "./sign-request.ts";
import { SiteClient, type Timeouts } from "./site-client.ts";
import { isReadable } from "./wanted-type.ts";

const productToken = "Nearcrawl";
const maxRedirects = 5;

export type RobotsAnswer =
  /** Rules that were read; or none, because there is no such file (all is allowed). */
  | {
      readonly type: "rules" | "none";
      readonly rules: RobotsRules;
      readonly difference?: OtherReading | undefined;
    }
  /** 5xx or 429: all is forbidden, for this reason. */
  | { readonly type: "closed"; readonly why: string }
  /** No answer, or a bot gate's: nothing can be fetched. */
  | { readonly type: "unreachable"; readonly failure: Failure };

/** Waits until the site client's host may be asked; what it returns takes note of how that went (null: not at all). */
export type TakeTurn = (client: SiteClient) => Promise<(answer: HostAnswer | null) => void>;

/** Thrown by a TakeTurn when there will be no turn in time: nothing is known of robots.txt then. */
export class NoTurn extends Error {}

export interface RobotsAsking {
  readonly connector: Connector;
  readonly timeouts: Timeouts;
  readonly userAgent: () => string;
  readonly take: TakeBytes;
  readonly sign?: SignRequest | undefined;
  /** Whose rules are wanted; ours, unless somebody asks on behalf of another crawler. */
  readonly agent?: string;
  /** Told of each robots.txt that was read. */
  readonly onFile?: (file: Buffer) => void;
}

/** What was read at a place: an origin for its /robots.txt, the URL for anything else that a redirect led to. */
export interface RobotsMemory {
  get(place: string): RobotsAnswer | null;
  set(place: string, answer: RobotsAnswer): void;
  /** Whether a host may be asked once more for something that is not its own /robots.txt; counts when it may. */
  mayAskElsewhere(host: string): boolean;
}

/** Throws nothing but what `takeTurn` throws. */
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

/** One for everything that one origin's robots.txt makes us ask: five redirects, and so eleven requests at most. */
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

/** Of the chain alone, and no news of the places on its way: they may be nearer to their own file. */
const tooManyRedirects: RobotsAnswer = {
  type: "closed",
  why: "robots.txt leads from one redirect to the next",
};

/** `owner`: the origin whose own robots.txt led here. */
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
  // A limit of ours says nothing of the site.
  const isOurs = answer.type === "unreachable" && answer.failure.code === "held-back";
  if (answer !== tooManyRedirects && !isOurs) memory.set(place, answer);
  return answer;
}

/** What stands in the way of a URL of another origin; null: nothing does, and the request is counted. */
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
    // Another slice may have asked while this one waited for its turn.
    const known = memory.get(place);
    if (known !== null) {
      endTurn(null);
      return known;
    }
    // To the host's pace every 5xx is a "not now": robots.txt is asked for again after the back-off.
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

/** robots.txt, or another that is asked for beside the pages. */
interface SmallFile {
  readonly path: string;
  readonly accept: string;
  readonly of: Challenge["of"];
  readonly userAgent: () => string;
  readonly take: TakeBytes;
  /** Null: by its status the answer is not the file. */
  readonly read: (answer: SiteAnswer) => Promise<{ readonly bytes: Buffer } | null>;
}

interface SmallAnswer {
  readonly status: number;
  /** Null: it is not the file. */
  readonly bytes: Buffer | null;
  /** Where a redirect leads. */
  readonly location: string | null;
}

/** In the turn that `endTurn` ends. */
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

// Reads a response body within bounds: so many bytes off the wire, so many after decoding. A body that is
// larger is cut and marked; one whose coding is broken is a failure, never half a page that looks whole.

export type { TakeBytes };

/** Most body bytes that are kept, on the wire and decoded (real pages are smaller, 99.9 % of them). */
export const maxBodyBytes = 5 * 1024 * 1024;

/** Some sites send the whole page along with a redirect; more, without saying how much, is no page. */
const maxRedirectBytes = 256 * 1024;

interface Body {
  readonly bytes: Buffer;
  readonly wireBytes: number;
  readonly truncated: boolean;
}

interface BodyBounds {
  readonly limit: number;
  readonly take: TakeBytes;
  /** Asked with the first bytes of a body that is not encoded: false ends the reading there. */
  readonly wants?: (head: Buffer) => boolean;
}

/** The decoded body, at most `limit` bytes of it. Throws a Failure. */
async function readBody(answer: SiteAnswer, limit: number, take: TakeBytes): Promise<Body> {
  return (await readWantedBody(answer, { limit, take }))!;
}

/** The same, unpacked where it is gzip without a header that says so. */
async function readPacked(
  answer: SiteAnswer,
  limit: number,
  take: TakeBytes,
): Promise<{ readonly bytes: Buffer }> {
  const { bytes, truncated } = await readBody(answer, limit, take);
  return isGzip(bytes) ? decodeBody("gzip", { bytes, cut: truncated, limit }) : { bytes };
}

/** The same; null when its first bytes were not wanted. */
export async function readWantedBody(answer: SiteAnswer, bounds: BodyBounds): Promise<Body | null> {
  const { codings, unknown } = await codingsOrDrop(answer, bounds.take);
  const { limit, take, wants } = bounds;
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

/** Reads nothing more: closes the connection unless what is left is small. */
export async function dropBody(answer: SiteAnswer, take: TakeBytes): Promise<void> {
  await answer.drop(take);
}

/** The same of an error, whose body may be a bot gate's: throws a Failure then. Any other remains what its status says. */
export async function dropUnlessGate(
  answer: SiteAnswer,
  of: Challenge["of"],
  take: TakeBytes,
): Promise<void> {
  const announced = Number(answer.headers["content-length"] ?? 0);
  if (!mayBeGate(answer) || announced > mostGateBytes) return dropBody(answer, take);
  const body = await readBody(answer, mostGateBytes, take).catch(() => null);
  if (body === null || body.truncated) return;
  const { provider } = gateInBody(body.bytes, answer, of);
  if (provider !== null) throw gateFailure(provider, of, answer.status);
}

/** Where the header says that a bot gate answered: whatever the status is, there is nothing to read. */
export async function throwGateInHeader(
  answer: SiteAnswer,
  of: Challenge["of"],
  take: TakeBytes,
): Promise<void> {
  const provider = gateInHeaders(answer);
  if (provider === null) return;
  await dropBody(answer, take);
  throw gateFailure(provider, of, answer.status);
}

/** The body of a redirect is not wanted either, but it must have an end. */
export async function hasEndedRedirect(answer: SiteAnswer, take: TakeBytes): Promise<boolean> {
  return answer.drop(take, maxRedirectBytes);
}
