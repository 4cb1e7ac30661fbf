/** Answers a child's message in one transaction, within the child's daily limit of new hosts, and asks the parent. */

import { z } from "zod";
import { asCrawlerId } from "#core/ids";
import { canParseUrl } from "#core/ip/url-host";
import type { Log } from "#core/log";
import { urlKeyOf } from "#core/url-key";
import type { ChildMessage, ExchangedUrl, ParentAnswer } from "#protocol/exchange";
import type { DeepReadonly } from "../../core/policy.ts";
import { nothingInBoth, readLayer } from "../../place/domain-sets/partition.ts";
import type { NewHostBudget } from "../frontier/budgets.ts";
import { readClaims } from "../frontier/claims.ts";
import type { CrawlScope } from "../frontier/frontier.ts";
import type { ExchangeStore, GivenUrl, GivenUrls, TakenUrls, TakingSettings } from "./exchange-store.ts";
import type { HttpParentClient } from "./parent-client.ts";

export interface AnswerChildPorts {
  readonly store: Pick<ExchangeStore, "answer">;
  readonly scope: () => CrawlScope;
  /** Daily limit of unknown hosts per child, like a crawler's. */
  readonly newHosts: NewHostBudget;
  readonly onTaken: (taken: TakenUrls) => void;
}

export async function answerChild(
  childId: number,
  message: ChildMessage,
  ports: AnswerChildPorts,
  now: Date,
): Promise<{ readonly answer: ParentAnswer } | { readonly refused: string }> {
  const { urls, ...rest } = message;
  const given = readGivenUrls(urls);
  if (typeof given === "string") return { refused: given };
  // Children have budgets of their own, in which they are numbered like crawlers.
  const budgetId = asCrawlerId(childId);
  const mostNewHosts = Math.min(ports.newHosts.left(budgetId, now), 2 ** 31 - 1);
  const settings = { scope: ports.scope(), mostNewHosts, now };
  const answered = await ports.store.answer(childId, { ...rest, given }, settings);
  if ("refused" in answered) return answered;
  ports.newHosts.spend(budgetId, answered.newHosts, now);
  ports.onTaken(answered.taken);
  return { answer: answered.answer };
}

// Asks the parent: sends it what belongs to others and receives what belongs here, in one exchange after the other
// until nothing waits on either side. Without an answer it retries after growing pauses. Nothing is lost, because the
// same numbers are sent until they are acknowledged.

interface AskParentPorts {
  readonly store: Omit<ExchangeStore, "answer">;
  readonly client: Pick<HttpParentClient, "exchange">;
  readonly taking: () => TakingSettings;
  readonly random: () => number;
  readonly onTaken: (taken: TakenUrls, told: number) => void;
  readonly log: Log;
  readonly everyMs: number;
}

const longestPauseMs = 300_000;

/** Maximum exchanges per run, because `stop` waits for a run to end. */
const mostExchanges = 50;

export type TurnOutcome = "done" | "more" | "no-parent" | "failed";

export class AskParent {
  readonly #ports: AskParentPorts;
  #failures = 0;
  #hasAnswer = false;

  constructor(ports: AskParentPorts) {
    this.#ports = ports;
  }

  /** Delay until the next run: doubled with each failure, plus up to half at random, so that children do not ask in step. */
  nextMs(): number {
    const { everyMs } = this.#ports;
    if (this.#failures === 0) return everyMs;
    const pauseMs = Math.min(longestPauseMs, everyMs * 2 ** Math.min(this.#failures - 1, 20));
    return pauseMs * (1 + this.#ports.random() / 2);
  }

  async turn(): Promise<TurnOutcome> {
    for (let exchanges = 0; exchanges < mostExchanges; exchanges += 1) {
      const outcome = await this.#exchange();
      if (outcome !== "more") return outcome;
    }
    return "more";
  }

  async #exchange(): Promise<TurnOutcome> {
    const { store, client, taking, onTaken } = this.#ports;
    // A restored database may reuse numbers that the parent knows, so the first message only asks for the parent's state.
    const message = await store.message(!this.#hasAnswer);
    if (message === null) return "no-parent";
    const reply = await client.exchange(message);
    if (reply.type === "unreachable") return await this.#fail(reply.words, "unreachable");
    if (reply.type === "refused") return await this.#fail(reply.words, "refused");
    const given = readGivenUrls(reply.answer.urls);
    if (typeof given === "string") return await this.#fail(`its answer is invalid: ${given}`, "refused");
    const { urls: _, ...answer } = reply.answer;
    const result = await store.take({ ...answer, given }, taking());
    if ("refused" in result) return await this.#fail(result.refused, "refused");
    if (this.#failures > 0)
      this.#ports.log.info({ failures: this.#failures }, "the parent coordinator answers again");
    this.#failures = 0;
    this.#hasAnswer = true;
    onTaken(result.taken, result.told);
    return result.waiting ? "more" : "done";
  }

  async #fail(words: string, why: "unreachable" | "refused"): Promise<TurnOutcome> {
    const { store, log, taking } = this.#ports;
    this.#failures += 1;
    if (this.#failures === 1)
      log.warn({ why, words }, "the parent coordinator accepts nothing; its URLs wait");
    const failure = why === "refused" ? `it refuses: ${words}` : `it is unreachable: ${words}`;
    await store.fail(failure, taking().now);
    return "failed";
  }
}

const loopbackHost = /^(?:localhost|\[::1\]|127(?:\.\d{1,3}){3})$/;

function isParentUrl(text: string): boolean {
  if (!canParseUrl(text)) return false;
  const { protocol, hostname, username, password, search, hash } = new URL(text);
  if (username + password + search + hash !== "") return false;
  return protocol === "https:" || (protocol === "http:" && loopbackHost.test(hostname));
}

/** The setting `parent` in the settings file, as `nearcrawl coordinators invite NAME` prints it at the parent. */
export const parentSettings = z.strictObject({
  url: z
    .string()
    .max(1000)
    .refine(isParentUrl, {
      error: ({ input }) => `"${input}" must be https://host[:port][/path], or http:// on this machine`,
    })
    .transform((url) => url.replace(/\/+$/, "")),
  key: z
    .string()
    .max(200)
    .regex(/^ncc_[A-Za-z0-9_-]{16,}$/, "is not a key from nearcrawl coordinators invite (ncc_…)"),
  /** SHA-256 of the parent's TLS key in base64url. `null` relies on public certificate authorities. */
  certificatePin: z
    .string()
    .regex(/^[A-Za-z0-9_-]{43}$/, "is not a pin of a TLS key: 43 characters of base64url")
    .nullable()
    .default(null),
  /** Domain sets, such as ".gr" or "example.org not blog.example.org". */
  owns: z
    .array(z.string().min(1).max(300))
    .min(1, "must name a domain set at least")
    .max(1000)
    .superRefine((texts, context) => {
      const claims = readClaims(texts);
      if (typeof claims === "string") context.addIssue({ code: "custom", message: claims });
    }),
});

/** The setting `coordinators` in the settings file: the exchange with parent and children. */
export const coordinatorsSettings = z.strictObject({
  /** Interval at which the parent is asked while nothing waits. */
  everySeconds: z.number().min(0.1).max(3600).default(5),
  /** Maximum URLs waiting for one coordinator, at about 200 bytes each. Beyond it, the least linked and oldest are dropped. */
  mostWaitingUrls: z.int().min(1000).max(100_000_000).default(1_000_000),
  /** Maximum unknown hosts that one child may add per day. */
  newHostsPerChildAndDay: z.int().min(0).max(1_000_000_000).default(10_000_000),
});

/** Finds contradictions with other settings: the coordinator's own address as its parent, or nothing left for it to crawl. */
export function parentFaults(
  parent: { readonly url: string; readonly owns: readonly string[] } | null,
  { publicUrl, domainSets }: { readonly publicUrl: string | null; readonly domainSets: readonly string[] },
): string[] {
  if (parent === null) return [];
  const isItself = publicUrl !== null && new URL(parent.url).href === new URL(publicUrl).href;
  const claims = readClaims(parent.owns);
  const crawled = readLayer(domainSets);
  const owned = typeof claims === "string" ? [] : claims;
  const nothing =
    typeof crawled === "string"
      ? null
      : nothingInBoth(owned, { layer: crawled, whose: "domainSets, which says what is crawled" });
  return [
    ...(isItself ? [`parent.url: ${parent.url} is this coordinator itself (publicUrl)`] : []),
    ...(nothing === null ? [] : [`parent.owns: ${nothing}`]),
  ];
}

// Messages of other coordinators are not trusted: each URL is canonicalised again, and numbers must rise.

/** Returns what is wrong if the whole message is invalid. URLs without a key are dropped and counted. */
function readGivenUrls(urls: readonly ExchangedUrl[]): GivenUrls | string {
  const read: GivenUrl[] = [];
  let highest = 0;
  for (const { url, ...rest } of urls) {
    if (rest.number <= highest)
      return `number ${rest.number} comes after number ${highest}: numbers must rise`;
    highest = rest.number;
    const key = urlKeyOf(url);
    if (typeof key !== "string") read.push({ ...rest, key });
  }
  return { urls: read, highest, faulty: urls.length - read.length };
}

export type ParentSettings = DeepReadonly<z.infer<typeof parentSettings>>;

export type CoordinatorsSettings = DeepReadonly<z.infer<typeof coordinatorsSettings>>;
