/** From the coordinator's settings to those of its parts. */

import type { CrawlerId } from "#core/ids";
import { formatAddress, parseAddress, unmapAddress } from "#core/ip/address";
import { keySetUrlAt } from "#protocol/identity";
import { contactPageOf, userAgentOf } from "#protocol/user-agent";
import type { CoordinatorConfig } from "./config.ts";
import { type DayBudget, isBelieved } from "./crawlers/crawler.ts";
import { defaultParameters } from "./delegation/policies/round.ts";
import type { QueueSettings } from "./delegation/queue.ts";
import { defaultRecalibrationRule, type RecalibrationRule } from "./delegation/recalibration/rule.ts";
import type { CoordinatorState } from "./delegation/state.ts";
import { NewHostBudget } from "./frontier/budgets.ts";
import { defaultOutboxBounds, type OutboxSettings } from "./frontier/link-outbox-store.ts";
import {
  type Arrival,
  defaultGatewaySettings,
  type GatewaySettings,
  type WelcomeExtras,
} from "./gateway/gateway-settings.ts";
import { following } from "./live-config.ts";
import { fixedPlan, type PlanInForce } from "./recrawl/recrawl-plan.ts";
import { defaultRecrawlSettings } from "./recrawl/visit-findings.ts";
import type { TakeResultsSettings } from "./results/take-results.ts";

/** A subnet that nobody could take is tried again after so long. */
const roundRetryMs = 30_000;

export function gatewaySettings(config: CoordinatorConfig): GatewaySettings {
  return {
    ...defaultGatewaySettings,
    userAgent: config.userAgent,
    heartbeatMs: config.heartbeatSeconds * 1000,
    departureSeconds: config.departureSeconds,
  };
}

/** How a crawler is to introduce itself to sites; only one with a key of its own can sign, and knows how. */
export function introductionOf(
  { hello, publicKey }: Pick<Arrival, "hello" | "publicKey">,
  config: Pick<CoordinatorConfig, "userAgent" | "publicUrl" | "signRequests">,
): Pick<WelcomeExtras, "userAgent" | "signatureAgent" | "signingKeys"> {
  const signatureAgent = publishedKeySet(config);
  const signs = config.signRequests && publicKey !== null;
  return {
    ...(hello.contact === undefined ? {} : { userAgent: userAgentOf(config.userAgent, hello.contact) }),
    ...(signs && signatureAgent !== null
      ? { signatureAgent, ...(hello.signingKeys && { signingKeys: true }) }
      : {}),
  };
}

/** The URL of the fleet's key set as sites reach it; null: not by https, and verifiers take no other. */
export function publishedKeySet({
  publicUrl,
  userAgent,
}: Pick<CoordinatorConfig, "userAgent" | "publicUrl">): string | null {
  const coordinator = publicUrl === null ? contactPageOf(userAgent) : new URL(publicUrl);
  return coordinator && keySetUrlAt(coordinator);
}

/** So that a partner can be told under which address others see the crawler. */
export function seenFrom({
  remoteAddress,
}: Pick<Arrival, "remoteAddress">): Pick<WelcomeExtras, "seenAddress"> {
  const address = parseAddress(remoteAddress);
  return address === null ? {} : { seenAddress: formatAddress(unmapAddress(address)) };
}

export function queueSettings(config: CoordinatorConfig): QueueSettings {
  const { policy, thresholdMs, lambdaMs, concurrentRounds, getFirstFromUrls } = config.delegation;
  return {
    round: {
      policy,
      parameters: { ...defaultParameters, thresholdMs, lambdaMs },
      probe: config.probe,
      hasWitnesses: config.trust.witnesses,
      allowSpecialPurpose: config.allowSpecialPurpose,
      getFirstFromUrls,
    },
    concurrentRounds,
    retryMs: roundRetryMs,
  };
}

export function recalibrationRule(config: CoordinatorConfig): RecalibrationRule {
  const { slowerThanFactor, timesInARow } = config.recalibration;
  return { ...defaultRecalibrationRule, factor: slowerThanFactor, inARow: timesInARow };
}

export function takeResultsSettings(
  config: CoordinatorConfig,
  plan: () => PlanInForce = () => fixedPlan,
): TakeResultsSettings {
  return following(() => ({
    scope: config.scope,
    recrawl: { ...defaultRecrawlSettings, intervalSeconds: config.recrawl.intervalHours * 3600 },
    plan: plan(),
  }));
}

export function outboxSettings(
  config: CoordinatorConfig,
  ports: Required<Pick<OutboxSettings, "known">>,
): OutboxSettings {
  const newHosts = new NewHostBudget(() => config.scope.newHostsPerCrawlerAndDay);
  return following(() => ({ ...defaultOutboxBounds, scope: config.scope, newHosts, ...ports }));
}

/** Crawlers that get no new subnet: draining, not believed, for measurements only, or their day's pages or bytes are used up. */
export function crawlersWithoutRoom(
  state: CoordinatorState,
  budget: DayBudget,
  now: Date,
): ReadonlySet<CrawlerId> {
  const full = state.crawlers.filter(
    (crawler) =>
      crawler.state === "draining" ||
      crawler.measuresOnly === true ||
      !isBelieved(crawler) ||
      budget.left(crawler, now) <= 0,
  );
  return new Set(full.map(({ crawlerId }) => crawlerId));
}

/** Rounds start by the thousand a second; what is full is looked at so often. */
const roomKeptMs = 200;

/** Of a large fleet less often, for looking takes longer: every 2 s among 10,000. */
const roomKeptMsPerCrawler = 0.2;

/** The same, looked at anew after a moment, and at once when the crawlers are others. */
export function watchRoom(state: CoordinatorState, budget: DayBudget): (now: Date) => ReadonlySet<CrawlerId> {
  let seen: { crawlers: CoordinatorState["crawlers"]; atMs: number; full: ReadonlySet<CrawlerId> } | null =
    null;
  return (now) => {
    const { crawlers } = state;
    const atMs = now.getTime();
    // Clocks may also be set back.
    const keptMs = Math.max(roomKeptMs, roomKeptMsPerCrawler * crawlers.length);
    const isFresh = seen !== null && seen.crawlers === crawlers && Math.abs(atMs - seen.atMs) < keptMs;
    if (!isFresh) seen = { crawlers, atMs, full: crawlersWithoutRoom(state, budget, now) };
    return seen!.full;
  };
}
