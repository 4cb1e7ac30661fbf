/**
 * Asks an origin for its robots.txt as RFC 9309 section 2.3.1 says: redirects are followed five times, to other
 * hosts too; 4xx stands for no rules at all; 5xx, 429 and no answer forbid everything. Every request of the chain
 * waits for its host's turn and is checked by the address guard like any other.
 */
import { canParseUrl } from "#core/ip/url-host";
import { answerOfFailure, type HostAnswer } from "../limits/host-answer.ts";
import { retryAfterSeconds } from "../limits/host-pace.ts";
import type { Connector } from "../net/connector.ts";
import { Failure, failureOf } from "../net/failure.ts";
import { dropBody, readBody, type TakeBytes } from "./body.ts";
import { parseRobots, type RobotsRules } from "./robots-rules.ts";
import { maxRobotsBytes } from "./robots-text.ts";
import type { SignRequest } from "./sign-request.ts";
import { SiteClient, type Timeouts } from "./site-client.ts";

export const productToken = "Nearcrawl";
const maxRedirects = 5;

export type RobotsAnswer =
  /** Rules that were read; or none, because there is no such file (all is allowed). */
  | { readonly type: "rules" | "none"; readonly rules: RobotsRules }
  /** 5xx or 429: all is forbidden, for this reason. */
  | { readonly type: "closed"; readonly why: string }
  /** No answer: nothing can be fetched. */
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
}

/** Throws nothing but what `takeTurn` throws. */
export async function askRobots(
  client: SiteClient,
  asking: RobotsAsking,
  takeTurn: TakeTurn,
): Promise<RobotsAnswer> {
  let url = new URL("/robots.txt", client.origin);
  for (let redirects = 0; redirects <= maxRedirects; redirects++) {
    const step = await oneStep(client, url, asking, takeTurn);
    if (step.type !== "redirect") return step;
    if (!canParseUrl(step.location, url.href)) return noRules;
    url = new URL(step.location, url);
    if (url.protocol !== "http:" && url.protocol !== "https:") return noRules;
  }
  return noRules;
}

type Step = RobotsAnswer | { readonly type: "redirect"; readonly location: string };

const noRules: RobotsAnswer = {
  type: "none",
  rules: { rules: [], crawlDelaySeconds: null, sitemaps: [], agents: [], cut: false },
};

async function oneStep(
  client: SiteClient,
  url: URL,
  asking: RobotsAsking,
  takeTurn: TakeTurn,
): Promise<Step> {
  const isHere = url.origin === client.origin;
  const { connector, timeouts, sign } = asking;
  const asked = isHere ? client : new SiteClient({ origin: url.origin, connector, timeouts, sign });
  const endTurn = await takeTurn(asked);
  const startedMs = performance.now();
  const read = await readStep(asked, url, asking).catch(failureOf);
  const tookMs = performance.now() - startedMs;
  if (!isHere) await asked.close();
  if (read instanceof Failure) {
    endTurn(answerOfFailure(read.code, tookMs));
    return { type: "unreachable", failure: read };
  }
  endTurn({ status: read.status, retryAfterSeconds: read.retryAfterSeconds, tookMs, isSmall: true });
  return read.step;
}

async function readStep(
  client: SiteClient,
  url: URL,
  asking: RobotsAsking,
): Promise<{ readonly step: Step; readonly status: number; readonly retryAfterSeconds: number | null }> {
  const answer = await client.get({
    path: url.pathname + url.search,
    headers: {
      "user-agent": asking.userAgent(),
      accept: "text/plain,*/*;q=0.5",
      "accept-encoding": "gzip, deflate, br",
    },
  });
  const { status, headers } = answer;
  const met = { status, retryAfterSeconds: retryAfterSeconds(headers["retry-after"], new Date()) };
  if (status >= 200 && status < 300) {
    const body = await readBody(answer, maxRobotsBytes + 1, asking.take);
    return { ...met, step: { type: "rules", rules: parseRobots(body.bytes, asking.agent ?? productToken) } };
  }
  await dropBody(answer, asking.take);
  const location = [headers.location ?? []].flat()[0];
  if (status >= 300 && status < 400 && location !== undefined) {
    return { ...met, step: { type: "redirect", location } };
  }
  if (status < 500 && status !== 429) return { ...met, step: noRules };
  // To the host's pace every 5xx is a "not now": robots.txt is asked for again after the back-off.
  const why = `robots.txt was answered with ${status}, which forbids everything`;
  return { ...met, status: status === 429 ? 429 : 503, step: { type: "closed", why } };
}
