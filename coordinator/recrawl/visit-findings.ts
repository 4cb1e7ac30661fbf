/**
 * What a visit says of its page's changes, and when the next one is: decided from the result, what the frontier knew
 * of the URL, and the plan in force.
 */
import type { FetchOutcome } from "#protocol/result";
import { expectedChangesPerDay, type StatedChanges } from "./change-hints.ts";
import {
  addSums,
  believableGap,
  likelyChangesPerDay,
  noVisits,
  type VisitSums,
  visitSums,
} from "./change-rate.ts";
import { importanceOf, type PlanInForce, plannedIntervalSeconds } from "./recrawl-plan.ts";

/** Of a URL before the visit. */
export interface KnownPage {
  readonly sums: VisitSums;
  readonly lastFetchedAt: Date | null;
  /** When this visit was to be. */
  readonly plannedAt: Date;
  /** SHA-256 of the body, hex; null: nothing to compare with. */
  readonly digest: string | null;
  readonly backLinks: number;
  readonly pageRank: number | null;
  /** By the host's sitemaps and feeds; absent: nothing. */
  readonly stated?: StatedChanges;
  /** Of its host: mean changes a day, priority group, multiplier; null: not known. */
  readonly channelChangesPerDay: number | null;
  readonly channelGroup: number | null;
  readonly hostMultiplier: number | null;
}

export interface ThisVisit {
  readonly fetchedAt: Date;
  readonly outcome: FetchOutcome;
  /** Of the body that was fetched; null: none was. */
  readonly digest: string | null;
  /** When the server or the page says that it changed last. */
  readonly changedAt: Date | null;
}

export interface VisitFindings {
  /** Null: nothing to compare with. */
  readonly hasChanged: boolean | null;
  /** Since the visit before; null: the first one, or not to be believed. */
  readonly gapSeconds: number | null;
  /** What the visit adds. */
  readonly sums: VisitSums;
  /** The estimate after it; null: the visit says nothing of it. */
  readonly changesPerDay: number | null;
  /** To the next visit; null: as the fixed interval says. */
  readonly intervalSeconds: number | null;
  /** Too little is known of the page yet: it waits no longer than the fixed interval, whatever is estimated. */
  readonly isLearning: boolean;
}

/** Compared visits from which on a page's own estimate counts. */
export const learningVisits = 3;

export function findingsOf(visit: ThisVisit, known: KnownPage, plan: PlanInForce): VisitFindings {
  const elapsedSeconds = secondsBetween(known.lastFetchedAt, visit.fetchedAt);
  const plannedSeconds = secondsBetween(known.lastFetchedAt, known.plannedAt) ?? 0;
  const gapSeconds = believableGap(elapsedSeconds ?? 0, plannedSeconds) ? elapsedSeconds : null;
  const hasChanged = changedOf(visit, known);
  const isSeen = visit.outcome.type === "fetched" || visit.outcome.type === "unchanged";
  if (!isSeen) return { ...nothingSeen, hasChanged, gapSeconds };
  const unchangedSeconds = secondsBetween(visit.changedAt, visit.fetchedAt);
  const sums =
    hasChanged === null || gapSeconds === null
      ? noVisits
      : (visitSums({
          elapsedSeconds: gapSeconds,
          hasChanged,
          lastChangeSecondsAgo: unchangedSeconds,
          plannedSeconds,
        }) ?? noVisits);
  // What a list states is a hint alone: what is found counts by the page and its server.
  const stated = unchangedSeconds ?? secondsBetween(known.stated?.modifiedAt ?? null, visit.fetchedAt);
  const expected = expectedChangesPerDay({
    usualPerDay: plan.usualChangesPerDay,
    ...(known.stated?.changeFrequency === undefined ? {} : { changeFrequency: known.stated.changeFrequency }),
    ...(stated === null || hasChanged === true ? {} : { unchangedSeconds: stated }),
    ...(known.channelChangesPerDay === null ? {} : { othersPerDay: known.channelChangesPerDay }),
  });
  const all = addSums(known.sums, sums);
  const changesPerDay = likelyChangesPerDay(all, expected);
  const intervalSeconds = interval(known, changesPerDay, plan);
  const isLearning = all.comparedVisits < learningVisits;
  return { hasChanged, gapSeconds, sums, changesPerDay, intervalSeconds, isLearning };
}

const nothingSeen = { sums: noVisits, changesPerDay: null, intervalSeconds: null, isLearning: false };

function interval(known: KnownPage, changesPerDay: number, plan: PlanInForce): number | null {
  const importance = importanceOf(known, plan.rankedPages);
  const { channelGroup: group, hostMultiplier } = known;
  return plannedIntervalSeconds({ changesPerDay, importance, group, hostMultiplier }, plan);
}

/** A 304, or a body that the crawler knew by its digest, is the same page; another digest is another one. */
function changedOf({ outcome, digest }: ThisVisit, known: KnownPage): boolean | null {
  if (outcome.type === "unchanged") return false;
  if (outcome.type !== "fetched" || digest === null || known.digest === null) return null;
  return digest !== known.digest;
}

function secondsBetween(from: Date | null, to: Date): number | null {
  const ms = from === null ? Number.NaN : to.getTime() - from.getTime();
  return Number.isNaN(ms) ? null : ms / 1000;
}
