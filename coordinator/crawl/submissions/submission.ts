/**
 * URLs that people submit. Each is answered at once (new, known, another coordinator's, refused), and a receipt shows
 * its progress until it is fetched.
 */

import { z } from "zod";
import type { Change } from "#core/audit";
import { howMany, instantWords } from "#core/format";
import type { AllowedSpecialPurpose } from "#core/ip/special-purpose";
import { withoutUser } from "#core/ip/url-host";
import { type UrlKey, urlKeyOf } from "#core/url-key";
import { dateTime, type ToldOf } from "../../web/api-operation.ts";
import { seedFault } from "../frontier/admit-urls.ts";
import type { CrawlScope } from "../frontier/frontier.ts";
import type { UrlTurn } from "../frontier/open-lease-reads.ts";

/** `add` puts the URL into the frontier. `recrawl` fetches a URL again that the frontier has. */
export const submissionDeeds = ["add", "recrawl"] as const;

const urlAnswers = ["new", "known", "elsewhere", "refused"] as const;

export const submissionBounds = {
  /** Maximum URLs per HTTP request. */
  urls: 10_000,
  /** How many days receipts are kept. */
  keepDays: 90,
  /** Receipts with more URLs do not show how many were fetched. */
  countedUrls: 10_000,
} as const;

const followedStates = [
  "refused",
  "elsewhere",
  "unknown",
  "resolving",
  "unresolvable",
  "undelegated",
  "in-progress",
  "fetched",
  "failed",
  "gone",
  "held",
  "blocked-by-robots",
  "scheduled",
  "due",
] as const;

export const submission = z
  .object({
    submissionId: z.int(),
    deed: z.enum(submissionDeeds),
    submittedBy: z.string(),
    submittedAt: dateTime(),
    urls: z
      .object({ new: z.int(), known: z.int(), elsewhere: z.int(), refused: z.int() })
      .describe(
        "How many had which answer; elsewhere: another coordinator owns them, and they are sent there.",
      ),
    fetched: z
      .int()
      .nullable()
      .describe("Of the new and known ones, how many were fetched since; null: too many to count."),
  })
  .meta({ id: "Submission" });

export const submittedUrl = z
  .object({
    place: z.int().describe("Line or position in the submission, from 1."),
    url: z.string().describe("Canonical, as crawled; as given if it is not a URL."),
    answer: z.enum(urlAnswers),
    reason: z.string().nullable().describe("Why it was refused, or who owns it."),
    state: z.enum(followedStates),
    words: z.string().describe("Its state, in plain words."),
    crawler: z.string().nullable().describe("The crawler of its subnet; null: none yet."),
    aboutAt: dateTime()
      .nullable()
      .describe("Estimated fetch time, from what is due on its host and its pace; null: unknown."),
    lastFetchedAt: dateTime().nullable(),
    lastStatus: z.int().nullable(),
  })
  .meta({ id: "SubmittedUrl" });

export type SubmissionDeed = (typeof submissionDeeds)[number];

/** Limits of scope site-recrawl. `hostsAtOnce` limits the DNS look-ups per request. */
export const ownSiteBounds = { urlsAtOnce: 1000, hostsAtOnce: 20, urlsPerDay: 10_000 } as const;

/** A URL as submitted. `place` counts from 1. */
export interface GivenUrl {
  readonly place: number;
  /** The canonical URL. An invalid one is given without its user part, cut at 500 characters. */
  readonly url: string;
  readonly key: UrlKey | null;
  /** Why the URL can never be crawled, as far as its text shows; otherwise null. */
  readonly fault: string | null;
}

/** `allowSpecialPurpose` lists special addresses that may be crawled, such as 10.0.0.1. */
export function givenUrl(text: string, place: number, allowSpecialPurpose: AllowedSpecialPurpose): GivenUrl {
  const key = urlKeyOf(text.trim());
  if (typeof key === "string")
    return { place, url: withoutUser(text).slice(0, 500), key: null, fault: seedFault(text) };
  return { place, url: key.url, key, fault: seedFault(text, allowSpecialPurpose) };
}

export type Submission = ToldOf<typeof submission>;

export type FollowedUrl = ToldOf<typeof submittedUrl>;

export type AnsweredUrl = Pick<FollowedUrl, "place" | "url" | "answer" | "reason">;

export interface HandedInFacts {
  /** Whether the frontier already had the URL. */
  readonly before: boolean;
  readonly now: boolean;
  readonly state: string | null;
  readonly lastReason: string | null;
  readonly hostState: string | null;
  readonly hostReason: string | null;
  readonly optedOut: boolean;
  readonly owner: string | null;
  /** Why the URL's channel excludes it. */
  readonly leftOut: string | null;
}

export function answerTo(facts: HandedInFacts, deed: SubmissionDeed): Omit<AnsweredUrl, "place" | "url"> {
  const refused = (reason: string) => ({ answer: "refused", reason }) as const;
  if (facts.optedOut) return refused("an opt-out covers it (nearcrawl opt-outs list)");
  if (!facts.now) {
    if (facts.owner !== null)
      return { answer: "elsewhere", reason: `coordinator ${facts.owner} owns it, and it is sent there` };
    if (facts.leftOut !== null) return refused(facts.leftOut);
    if (deed === "recrawl") return refused("not in the crawl; it can be added");
    return refused("host limit reached (scope.pagesPerHost)");
  }
  if (facts.hostState === "refused") return refused(facts.hostReason ?? "its host is refused");
  if (facts.state === "refused") return refused(facts.lastReason ?? "it was refused before");
  return { answer: facts.before ? "known" : "new", reason: null };
}

/** Says what the policies in force prevent from being followed, and how to change that. */
export function notFollowed({ admitNewHosts, maxDepth, pagesPerHost, followNofollow }: CrawlScope): string[] {
  return [
    ...(admitNewHosts
      ? []
      : ["links to hosts that nobody submitted: nearcrawl policy set scope.admitNewHosts=yes follows them"]),
    `what is more than ${howMany(maxDepth, "link")} from a submitted URL (scope.maxDepth)`,
    `more than ${howMany(pagesPerHost, "URL")} of a host (scope.pagesPerHost)`,
    ...(followNofollow ? [] : ["links with rel=nofollow (scope.followNofollow)"]),
  ];
}

export interface FollowedFacts extends AnsweredUrl {
  /** Fetches before this time do not count. If null, all count. */
  readonly submittedAt: Date | null;
  /** Null if the URL is unknown. */
  readonly state: UrlTurn | "held" | null;
  readonly nextFetchAt: Date | null;
  readonly lastFetchedAt: Date | null;
  readonly lastOutcome: string | null;
  readonly lastStatus: number | null;
  readonly lastReason: string | null;
  readonly hostState: "unresolved" | "resolved" | "refused" | "unresolvable" | null;
  readonly hostReason: string | null;
  readonly resolveAt: Date | null;
  readonly optedOut: boolean;
  readonly notBefore: Date | null;
  /** Time between two fetches of its host, if the host states one. */
  readonly hostPaceMs: number | null;
  /** How many URLs of its host are due earlier, counted up to a limit. */
  readonly ahead: number;
  readonly crawler: string | null;
  /** Whether its host has only IPv6 addresses while no online crawler has IPv6. */
  readonly needsUnspokenIpv6: boolean;
}

/** The pace of crawlers unless a site asks for less. */
const usualPaceMs = 1000;

export function followedUrl(facts: FollowedFacts, now: Date): FollowedUrl {
  const { place, url, answer, reason, crawler, lastStatus } = facts;
  const lastFetchedAt = facts.lastFetchedAt?.toISOString() ?? null;
  const common = { place, url, answer, reason, crawler, aboutAt: null, lastFetchedAt, lastStatus };
  return { ...common, ...standing(facts, now) };
}

type Standing = Pick<FollowedUrl, "state" | "words"> & { readonly aboutAt?: string };

function standing(facts: FollowedFacts, now: Date): Standing {
  const { answer, reason, hostState, state, crawler, lastFetchedAt } = facts;
  if (answer === "elsewhere") return { state: "elsewhere", words: reason ?? "" };
  if (answer === "refused") return { state: "refused", words: reason ?? "" };
  if (facts.optedOut) return { state: "refused", words: "an opt-out covers it" };
  if (state === null) return { state: "unknown", words: "not in the crawl" };
  if (state === "in-progress") return { state, words: `${crawler ?? "a crawler"} is fetching it` };
  if (lastFetchedAt !== null && lastFetchedAt >= (facts.submittedAt ?? lastFetchedAt)) return fetched(facts);
  if (state === "gone" && facts.lastOutcome === "payment-required")
    return { state: "failed", words: `status 402${because(facts.lastReason)}` };
  if (state === "gone") return { state: "gone", words: `it is gone${because(facts.lastReason)}` };
  if (hostState === "refused") return { state: "refused", words: facts.hostReason || "its host is refused" };
  if (state === "refused" || state === "blocked-by-robots")
    return { state, words: facts.lastReason || "it is refused" };
  if (hostState === "unresolved")
    return { state: "resolving", words: "its host's address is being looked up" };
  if (hostState === "unresolvable")
    return {
      state: "unresolvable",
      words: `its host has no address${because(facts.hostReason)}${againWords(facts)}`,
    };
  if (state === "held") return { state: "held", words: "held until its host's budget grows" };
  if (facts.needsUnspokenIpv6)
    return {
      state: "undelegated",
      words: "its host has only IPv6 addresses, and no crawler that is online speaks IPv6",
    };
  if (crawler === null)
    return { state: "undelegated", words: "the nearest crawler to its subnet is being determined" };
  return { state, ...turnWords(facts, crawler, now) };
}

const againWords = ({ resolveAt }: FollowedFacts) =>
  resolveAt === null ? "" : `; looked up again ${instantWords(resolveAt.toISOString())}`;

function fetched(facts: FollowedFacts): Standing {
  const { lastOutcome, lastStatus, lastReason, lastFetchedAt, crawler, nextFetchAt, state } = facts;
  const at = instantWords((lastFetchedAt as Date).toISOString());
  const by = crawler === null ? "" : `, in ${crawler}'s subnet`;
  const next =
    (state === "due" || state === "scheduled") && nextFetchAt !== null
      ? `; next ${instantWords(nextFetchAt.toISOString())}`
      : "";
  const status = lastStatus === null ? "" : ` (${lastStatus})`;
  if (lastOutcome === "fetched" || lastOutcome === "unchanged")
    return { state: "fetched", words: `${lastOutcome}${status} ${at}${by}${next}` };
  return {
    state: "failed",
    words: `${lastOutcome ?? "failed"}${status}${because(lastReason)} ${at}${by}${next}`,
  };
}

function turnWords(facts: FollowedFacts, crawler: string, now: Date): Omit<Standing, "state"> {
  const from = Math.max(now.getTime(), facts.nextFetchAt?.getTime() ?? 0, facts.notBefore?.getTime() ?? 0);
  const at = new Date(from + facts.ahead * Math.max(usualPaceMs, facts.hostPaceMs ?? 0)).toISOString();
  const before = facts.ahead === 0 ? "" : `, after ${howMany(facts.ahead, "URL")} of its host`;
  return { words: `${crawler} fetches it about ${instantWords(at)}${before}`, aboutAt: at };
}

const because = (reason: string | null) => (reason === null || reason === "" ? "" : `: ${reason}`);

/** For example "3 new, 1 known, 2 refused". Zero counts are omitted. */
export function countWords({ urls }: Pick<Submission, "urls">): string {
  const words = { new: "new", known: "known", elsewhere: "of other coordinators", refused: "refused" };
  const parts = urlAnswers
    .filter((one) => urls[one] > 0)
    .map((one) => `${urls[one].toLocaleString("en-GB")} ${words[one]}`);
  return parts.length === 0 ? "no URL" : parts.join(", ");
}

export function sumOf({ urls }: Pick<Submission, "urls">): number {
  return urlAnswers.reduce((sum, one) => sum + urls[one], 0);
}

export function submissionChange(receipt: Submission, first: string): Change {
  const { submissionId, deed, urls } = receipt;
  const many = sumOf(receipt);
  const what = deed === "add" ? "submitted" : "submitted for refetching";
  return {
    action: deed === "add" ? "urls-submitted" : "urls-recrawled",
    target: many === 1 ? first.slice(0, 500) : `submission ${submissionId}`,
    words: `${howMany(many, "URL")} ${what} (submission ${submissionId}): ${countWords(receipt)}.`,
    after: { submissionId, ...urls },
  };
}
