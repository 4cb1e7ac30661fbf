/**
 * What a dock remembers of releases, and every step from one memory to the next, as pure functions: what is saved
 * is always the outcome of a whole step, so a dock that is killed anywhere goes on from the step before or after.
 *
 *   current ≠ good: the current release is being watched; it becomes good, or the good one becomes current again
 *   current = good: it runs and is well; `previous` is the good one before it
 *   current = null: there is none (yet, or the one that ran was revoked): one is looked for
 */
import { z } from "zod";
import { digest, words } from "#protocol/fields";
import { publicKey } from "#protocol/identity";
import { releaseVersion } from "#protocol/messages";
import { maxBundleBytes } from "#protocol/release";
import type { Role } from "#protocol/release-envelope";
import { lastEnd, maxReleaseReports, type ReleaseReport, releaseReport } from "./supervisor-messages.ts";

/** Digests that are not tried again: the oldest are forgotten, which the manifests' numbers make harmless. */
const mostBad = 50;
/** Keys whose newest release is remembered: those of a role, and some that were retired. */
const mostSeen = 24;

const keptRelease = z.object({
  version: releaseVersion,
  digest,
  sequence: z.int().min(0),
  bytes: z.int().min(1).max(maxBundleBytes),
});
export type KeptRelease = Readonly<z.infer<typeof keptRelease>>;

export const releaseState = z.object({
  current: keptRelease.nullable(),
  good: keptRelease.nullable(),
  previous: keptRelease.nullable(),
  /** How often the current release was started while it is being watched. */
  watchedStarts: z.int().min(0),
  /** And how often it ended meanwhile for no reason but its own. */
  watchedFaults: z.int().min(0).default(0),
  /** The current release was welcomed by the coordinator while it is being watched. */
  welcomed: z.boolean().default(false),
  /** The newest release that each key was ever seen to have signed, taken or not: the floor for what it signs next. */
  seen: z
    .array(z.object({ key: publicKey, sequence: z.int().min(1) }))
    .max(mostSeen)
    .default([]),
  bad: z
    .array(
      z.object({
        ...{ digest, version: releaseVersion, reason: words, at: z.iso.datetime() },
        /** How often it gave way to the one before, and from when on it is tried again; null: never. */
        returns: z.int().min(1).default(1),
        againAt: z.iso.datetime().nullable().default(null),
      }),
    )
    .max(mostBad),
  /** What the coordinator offers, while it was not taken. */
  offered: z.object({ digest, firstAt: z.iso.datetime() }).nullable(),
  reports: z.array(releaseReport).max(maxReleaseReports),
  lastEnd: lastEnd.nullable(),
  /** While nothing runs: `It waits for …`. */
  waitsFor: z.object({ reason: words, since: z.iso.datetime() }).nullable().default(null),
  /** While no release is taken, since nobody says what is newest. */
  takesNothing: z.object({ reason: words, since: z.iso.datetime() }).nullable().default(null),
});
export type ReleaseState = Readonly<z.infer<typeof releaseState>>;

const unwatched = { watchedStarts: 0, watchedFaults: 0, welcomed: false } as const;

export const emptyState: ReleaseState = {
  current: null,
  good: null,
  previous: null,
  ...unwatched,
  seen: [],
  bad: [],
  offered: null,
  reports: [],
  lastEnd: null,
  waitsFor: null,
  takesNothing: null,
};

export function isWatched({ current, good }: ReleaseState): boolean {
  return current !== null && current.digest !== good?.digest;
}

type BadRelease = ReleaseState["bad"][number];

/** What is known against a release that is not to run now; null: nothing, or it is to be tried again. */
export function badRelease(state: ReleaseState, wanted: string, now: Date): BadRelease | null {
  const bad = state.bad.find(({ digest }) => digest === wanted);
  const isOver = bad !== undefined && bad.againAt !== null && new Date(bad.againAt) <= now;
  return bad === undefined || isOver ? null : bad;
}

/** Every release that is worth its place on the disk. */
export function keptReleases({ current, good, previous }: ReleaseState): KeptRelease[] {
  return [current, good, previous].filter((release) => release !== null);
}

/**
 * A verified release on the disk takes the place of what runs, to be watched. Where none has passed its watch yet, one
 * that was welcomed is what may have to be returned to.
 */
export function swapTo(state: ReleaseState, release: KeptRelease): ReleaseState {
  const good = state.good ?? (state.welcomed ? state.current : null);
  return {
    ...state,
    current: release.digest === good?.digest ? good : release,
    good,
    ...unwatched,
    offered: state.offered?.digest === release.digest ? null : state.offered,
  };
}

/** Nothing runs for this reason; null: something does. */
export function withWaiting(state: ReleaseState, reason: string | null, at: Date): ReleaseState {
  const waitsFor = sinceThen(state.waitsFor, reason, at);
  return waitsFor === state.waitsFor ? state : { ...state, waitsFor };
}

/** No release is taken for this reason; null: they are. */
export function withTakingNothing(state: ReleaseState, reason: string | null, at: Date): ReleaseState {
  const takesNothing = sinceThen(state.takesNothing, reason, at);
  return takesNothing === state.takesNothing ? state : { ...state, takesNothing };
}

type Since = ReleaseState["waitsFor"];

function sinceThen(before: Since, reason: string | null, at: Date): Since {
  const words = reason === null ? null : cut(reason);
  if ((before?.reason ?? null) === words) return before;
  return words === null ? null : { reason: words, since: at.toISOString() };
}

/** These keys have signed a release with this number. */
export function noteSeen(state: ReleaseState, sequence: number, signers: readonly string[]): ReleaseState {
  const higher = signers.filter((key) => (seenOf(state, key) ?? 0) < sequence);
  if (higher.length === 0) return state;
  const others = state.seen.filter(({ key }) => !higher.includes(key));
  return { ...state, seen: [...others, ...higher.map((key) => ({ key, sequence }))].slice(-mostSeen) };
}

/**
 * Below which nothing is taken. What a retired key has signed binds nobody any more: whoever stole it cannot shut out
 * what comes after it. Of a state from before there was such a memory, what runs is what was seen.
 */
export function newestSeen(state: ReleaseState, { keys }: Pick<Role, "keys">): number {
  if (state.seen.length === 0) return state.current?.sequence ?? 0;
  return Math.max(0, ...keys.map((key) => seenOf(state, key) ?? 0));
}

const seenOf = ({ seen }: ReleaseState, wanted: string) =>
  seen.find(({ key }) => key === wanted)?.sequence ?? null;

/** The coordinator let it in: it can at least work. */
export function noteWelcome(state: ReleaseState): ReleaseState {
  return isWatched(state) && !state.welcomed ? { ...state, welcomed: true } : state;
}

/** It was watched for long enough. */
export function passWatch(state: ReleaseState): ReleaseState {
  const { current, good } = state;
  if (current === null || !isWatched(state)) return state;
  const bad = state.bad.filter(({ digest }) => digest !== current.digest);
  const passed: ReleaseState = { ...state, good: current, previous: good, bad, ...unwatched };
  return withReport(passed, { version: current.version, state: "running", reason: "it runs and is well" });
}

export interface Fault {
  readonly reason: string;
  readonly at: Date;
}

/** A release that gave way so often is not tried again. */
const mostReturns = 3;

/**
 * The last good one becomes current again; null where there is none: the watched one is all there is. What made the other
 * one fall may have been this machine's bad hour: it counts as offered until it is tried again, `againMs` later at first
 * and four times as long each time after that. The coordinator, which is told that this crawler went back, offers it no
 * more by itself.
 */
export function returnToGood(
  state: ReleaseState,
  fault: Fault & { readonly againMs: number },
): ReleaseState | null {
  const { current, good } = state;
  if (current === null || good === null || !isWatched(state)) return null;
  const returns = 1 + (state.bad.find(({ digest }) => digest === current.digest)?.returns ?? 0);
  const waitMs = fault.againMs * 4 ** (returns - 1);
  const againAt = returns > mostReturns ? null : new Date(fault.at.getTime() + waitMs).toISOString();
  const again = againAt === null ? null : { digest: current.digest, firstAt: fault.at.toISOString() };
  const returned = {
    ...remember(state, current, fault, { returns, againAt }),
    ...{ current: good, ...unwatched, offered: state.offered ?? again },
  };
  return withReport(returned, { version: current.version, state: "returned", reason: cut(fault.reason) });
}

/** The current release must not run any more: the last good one that may takes its place, or none. */
export function withdrawCurrent(
  state: ReleaseState,
  { forbidden, ...fault }: Fault & { readonly forbidden: readonly string[] },
): ReleaseState {
  const { current } = state;
  if (current === null) return state;
  const without = remember(dropCurrent(state, forbidden), current, fault);
  return withReport(without, { version: current.version, state: "returned", reason: cut(fault.reason) });
}

/** The current release cannot be run for a reason that is not its own; it may be taken again. */
export function dropCurrent(state: ReleaseState, forbidden: readonly string[] = []): ReleaseState {
  const { current } = state;
  const [next = null, previous = null] = [state.good, state.previous].filter(
    (kept) => kept !== null && kept.digest !== current?.digest && !forbidden.includes(kept.digest),
  );
  return { ...state, current: next, good: next, previous, ...unwatched };
}

/** Said once: the same report as the last one of this version is not said again. */
export function withReport(state: ReleaseState, report: ReleaseReport): ReleaseState {
  const last = state.reports.findLast(({ version }) => version === report.version);
  if (last?.state === report.state && last.reason === report.reason) return state;
  return { ...state, reports: [...state.reports, report].slice(-maxReleaseReports) };
}

/** What was offered need not be looked at again, unless something else is offered by now. */
export function withoutOffer(state: ReleaseState, digest: string | null): ReleaseState {
  return state.offered?.digest === digest ? { ...state, offered: null } : state;
}

/** The coordinator has so many of them, the oldest. */
export function withoutReports(state: ReleaseState, count: number): ReleaseState {
  return { ...state, reports: state.reports.slice(count) };
}

const forGood = { returns: 1, againAt: null };

function remember(
  state: ReleaseState,
  { digest, version }: KeptRelease,
  { reason, at }: Fault,
  again: Pick<BadRelease, "returns" | "againAt"> = forGood,
): ReleaseState {
  const entry = { digest, version, reason: cut(reason), at: at.toISOString(), ...again };
  const others = state.bad.filter((bad) => bad.digest !== digest);
  return { ...state, bad: [...others, entry].slice(-mostBad) };
}

const cut = (text: string) => text.slice(0, 500);
