/** Counts for the figures of minutes and for the metrics. */
import { knownGate } from "#protocol/bot-gate";
import { useAnswers } from "#protocol/preferences";
import type { FetchResult } from "#protocol/result";
import type { TakenResults } from "../../crawl/batch/accepted-result.ts";
import { asksPayment, challengeOf } from "../../crawl/batch/visit.ts";
import type { AppliedLinks } from "../../crawl/frontier/link-outbox-store.ts";
import type { ResultBatch } from "../../place/crawlers/result-batch.ts";
import type { FinishedRound } from "../../place/delegation/delegation.ts";
import { createMetrics, type Metrics } from "./metrics.ts";
import { MinuteFigures } from "./minute-figures.ts";
import type { LiveState } from "./overview.ts";

export class Counters {
  readonly metrics: Metrics = createMetrics({ processMetrics: true });
  readonly figures = new MinuteFigures();
  readonly #refusals = new Map<string, number>();
  /** What came over the wire: a result that arrives twice is in these bytes twice, and in the database once. */
  results(batch: ResultBatch, taken: TakenResults): void {
    const pages = batch.results.filter(({ result }) => result.page !== null);
    const fetchedBytes = pages.reduce((sum, { result }) => sum + result.bodyBytes, 0);
    const shippedBytes = batch.results.reduce((sum, { wireBytes }) => sum + wireBytes, 0);
    this.figures.results(batch, taken.stored);
    const { metrics } = this;
    for (const { result } of batch.results) {
      metrics.fetches.inc({ outcome: result.outcome.type });
      if (asksPayment(result.outcome)) metrics.paymentsAsked.inc();
      const challenge = challengeOf(result.outcome);
      if (challenge !== null) metrics.challenges.inc({ provider: knownGate(challenge.provider) });
      for (const [use, answer] of Object.entries(useAnswers(statedOfPage(result))))
        metrics.statedPages.inc({ use, answer });
      if (result.outcome.type === "failed") metrics.fetchFailures.inc({ blame: result.outcome.blame });
    }
    metrics.pages.inc(pages.length);
    metrics.fetchedBytes.inc(fetchedBytes);
    metrics.shippedBytes.inc(shippedBytes);
    metrics.results.inc({ taken: "stored" }, taken.stored);
    metrics.results.inc({ taken: "duplicate" }, taken.duplicates);
    metrics.results.inc({ taken: "without-lease" }, taken.withoutLease);
    metrics.urlsAdmitted.inc(taken.newUrls);
  }

  round(round: FinishedRound): void {
    this.figures.round(paid(round).length);
    const decided = round.crawlerId === null ? "no" : "yes";
    this.metrics.rounds.inc({ policy: round.policy, cause: round.cause, decided });
    for (const { outcome } of paid(round)) {
      this.metrics.probes.inc({ method: outcome.method, outcome: outcome.type });
    }
  }

  /** What is now, and the refusals so far by code. */
  observe(live: LiveState, refusals: Readonly<Record<string, number>>): void {
    const { metrics } = this;
    metrics.sessions.set(live.sessions);
    metrics.roundsUnderWay.set(live.roundsUnderWay);
    metrics.probesUnderWay.set(live.probesUnderWay);
    for (const [code, count] of Object.entries(refusals)) {
      metrics.sessionsRefused.inc({ code }, count - (this.#refusals.get(code) ?? 0));
      this.#refusals.set(code, count);
    }
  }

  linksApplied({ effects, newUrls }: AppliedLinks): void {
    this.metrics.urlsAdmitted.inc(newUrls);
    this.metrics.linksApplied.inc(effects);
  }

  leases(event: "granted" | "returned" | "expired", count: number): void {
    this.metrics.leases.inc({ event }, count);
  }

  refusedResults(count: number): void {
    this.metrics.results.inc({ taken: "refused" }, count);
  }

  incident(kind: string): void {
    this.metrics.incidents.inc({ kind });
  }

  moves(cause: string, count: number): void {
    this.metrics.moves.inc({ cause }, count);
  }
}

const statedOfPage = ({ outcome, preferences = [] }: FetchResult) =>
  outcome.type === "fetched" || outcome.type === "unchanged" ? preferences : [];

/** What the crawl's own fetches told cost no probe. */
const paid = ({ probes }: FinishedRound) => probes.filter(({ how }) => how !== "get");
