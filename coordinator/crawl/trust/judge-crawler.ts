/**
 * Consequences of a decided comparison: a crawler that stood alone is watched more closely, and one that did so too
 * often is distrusted. It gets no new subnets, its own go to others, and its recent pages are fetched again; the
 * operator is told, sees every page of the evidence, and can restore it.
 */
import type { CrawlerId } from "#core/ids";
import type { IncidentNotes } from "#core/incidents";
import type { Log } from "#core/log";
import type { CoordinatorState } from "../../place/delegation/state.ts";
import type { CheckStep, OpenCheck, TrustHistory } from "./comparison.ts";
import {
  type CheckOutcome,
  type Evidence,
  evidenceOf,
  honestRates,
  isUnproven,
  type TrustRule,
} from "./evidence.ts";
import type { TrustStore } from "./trust-store.ts";

interface JudgePorts {
  readonly trust: TrustStore;
  readonly state: CoordinatorState;
  readonly incidents: IncidentNotes;
  /** Compares other pages of the host on which a crawler stood alone. */
  readonly followUp: (check: OpenCheck, most: number, now: Date) => Promise<void>;
  readonly log: Log;
  readonly now: () => Date;
}

interface JudgeSettings {
  readonly rule: TrustRule;
  readonly watchedPages: number;
  /** `drain` hands its subnets over; `keep` leaves them. */
  readonly onDistrust: "drain" | "keep";
  /** Maximum number of its latest pages that are fetched again. */
  readonly refetchPages: number;
}

/** Comparisons count this long. */
export const evidenceDays = 30;

/** Other pages of a host compared when a crawler stood alone on one. */
const followUps = 3;

export async function judgeCheck(
  check: OpenCheck,
  { verdict }: Extract<CheckStep, { type: "verdict" }>,
  ports: JudgePorts,
  settings: JudgeSettings,
): Promise<void> {
  const now = ports.now();
  if (verdict.type === "alone" || verdict.type === "once") {
    if (verdict.suspect !== check.crawlerId) return;
    const isFirstHere = !check.host.suspects.includes(verdict.suspect);
    if (isFirstHere) await ports.followUp(check, followUps, now);
    return await weigh(verdict.suspect, ports, settings, now);
  }
  if (verdict.type === "cannot-tell") return await watchUnproven(check.crawlerId, ports, settings, now);
  // Agreeing pages make the host's differing ones count.
  if (verdict.type === "agree" && check.cause === "follow-up") {
    await weigh(check.crawlerId, ports, settings, now);
  }
}

async function weigh(
  crawlerId: CrawlerId,
  ports: JudgePorts,
  settings: JudgeSettings,
  now: Date,
): Promise<void> {
  const { trust, log } = ports;
  const history = await trust.history(daysBefore(now, evidenceDays), now);
  if (history.distrusted.has(crawlerId)) return;
  const own = history.outcomes.filter((outcome) => outcome.crawlerId === crawlerId);
  const rates = honestRates(othersOf(crawlerId, history), history.silent);
  const evidence = evidenceOf(own, history.silent, { rates, rule: settings.rule });
  await trust.setScore(crawlerId, evidence.score, settings.watchedPages);
  if (evidence.score > 0)
    log.info({ crawlerId, score: evidence.score }, "a crawler stands alone with its pages");
  if (evidence.score >= settings.rule.threshold)
    await distrust(crawlerId, { evidence, own }, ports, settings);
}

/** With too many inconclusive comparisons, more of its pages are compared until enough are conclusive. */
async function watchUnproven(
  crawlerId: CrawlerId,
  { trust, log }: JudgePorts,
  { watchedPages }: JudgeSettings,
  now: Date,
): Promise<void> {
  const checks = await trust.untold(crawlerId, daysBefore(now, evidenceDays));
  if (!isUnproven(checks)) return;
  await trust.watch(crawlerId, watchedPages);
  log.info({ crawlerId, ...checks }, "too many comparisons of a crawler's pages come to nothing");
}

function othersOf(crawlerId: CrawlerId, { outcomes, distrusted }: TrustHistory): CheckOutcome[][] {
  const histories = new Map<CrawlerId, CheckOutcome[]>();
  for (const outcome of outcomes) {
    if (outcome.crawlerId === crawlerId || distrusted.has(outcome.crawlerId)) continue;
    const history = histories.get(outcome.crawlerId) ?? [];
    history.push(outcome);
    histories.set(outcome.crawlerId, history);
  }
  return [...histories.values()];
}

async function distrust(
  crawlerId: CrawlerId,
  found: { readonly evidence: Evidence; readonly own: readonly CheckOutcome[] },
  ports: JudgePorts,
  settings: JudgeSettings,
): Promise<void> {
  const { trust, state, incidents, log, now } = ports;
  const words = distrustWords(found.evidence, found.own.length);
  const drain =
    settings.onDistrust === "keep"
      ? null
      : { pagesSince: daysBefore(now(), evidenceDays), mostPages: settings.refetchPages };
  const { isNew, dueAgain } = await trust.distrust({ crawlerId, words, now: now(), drain });
  if (!isNew) return;
  const crawler = state.crawler(crawlerId)?.name ?? String(crawlerId);
  log.warn({ crawlerId, crawler, dueAgain, words }, "a crawler is not trusted any more");
  incidents.note({
    crawlerId,
    kind: "wrong-result",
    words: `${words}. See nearcrawl fleet show ${crawler}`,
    remoteAddress: null,
    at: now(),
  });
}

const how = {
  alone: "its pages differed from everybody else's repeatedly",
  once: "its pages differed from everybody else's, but not when it fetched them again",
  wholly: "hardly any of its pages matched what others fetched",
} as const;

function distrustWords({ suspicion, against }: Evidence, comparisons: number): string {
  return `${how[suspicion]}: on ${against.length} hosts, in ${comparisons} comparisons`;
}

const daysBefore = (now: Date, days: number) => new Date(now.getTime() - days * 86_400_000);
