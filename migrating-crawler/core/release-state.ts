/**
 * The supervisor's state about releases and its transitions, as pure functions. Only the result of a whole transition is
 * saved, so that a supervisor killed at any time continues from before or after a transition.
 *
 *   current ≠ good: the current release is being watched, until it becomes good or the good one becomes current again
 *   current = good: the release runs well, and `previous` is the good one before it
 *   current = null: there is no release yet, or it was revoked, and the supervisor looks for one
 */
import { z } from "zod";
import { digest, words } from "#protocol/fields";
import { publicKey } from "#protocol/identity";
import { releaseVersion } from "#protocol/messages";
import { maxBundleBytes } from "#protocol/release";
import type { Role } from "#protocol/release-envelope";
import { lastEnd, maxReleaseReports, type ReleaseReport, releaseReport } from "./supervisor-messages.ts";

/** When the list is full, the oldest rejected digests are forgotten. That is harmless, because manifest numbers only rise. */
const mostBad = 50;
/** The newest release is remembered for at most this many keys: those of a role and some retired ones. */
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
  watchedStarts: z.int().min(0),
  /** How many of those runs ended because of a fault of the release. */
  watchedFaults: z.int().min(0).default(0),
  welcomed: z.boolean().default(false),
  /** The newest release that each key has signed, whether or not it was installed. A key's next release must be newer. */
  seen: z
    .array(z.object({ key: publicKey, sequence: z.int().min(1) }))
    .max(mostSeen)
    .default([]),
  bad: z
    .array(
      z.object({
        ...{ digest, version: releaseVersion, reason: words, at: z.iso.datetime() },
        /** How often the release was rolled back. `againAt` is when it is tried again, or null for never. */
        returns: z.int().min(1).default(1),
        againAt: z.iso.datetime().nullable().default(null),
      }),
    )
    .max(mostBad),
  offered: z.object({ digest, firstAt: z.iso.datetime() }).nullable(),
  reports: z.array(releaseReport).max(maxReleaseReports),
  lastEnd: lastEnd.nullable(),
  waitsFor: z.object({ reason: words, since: z.iso.datetime() }).nullable().default(null),
  /** Why no release is installed: the newest release is not known. */
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

export function badRelease(state: ReleaseState, wanted: string, now: Date): BadRelease | null {
  const bad = state.bad.find(({ digest }) => digest === wanted);
  const isOver = bad !== undefined && bad.againAt !== null && new Date(bad.againAt) <= now;
  return bad === undefined || isOver ? null : bad;
}

export function keptReleases({ current, good, previous }: ReleaseState): KeptRelease[] {
  return [current, good, previous].filter((release) => release !== null);
}

/**
 * Makes a verified release on disk the current one, which is then watched. If no release has passed its watch yet, the current
 * one becomes the fallback, provided that the coordinator welcomed it.
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

export function withWaiting(state: ReleaseState, reason: string | null, at: Date): ReleaseState {
  const waitsFor = sinceThen(state.waitsFor, reason, at);
  return waitsFor === state.waitsFor ? state : { ...state, waitsFor };
}

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

export function noteSeen(state: ReleaseState, sequence: number, signers: readonly string[]): ReleaseState {
  const higher = signers.filter((key) => (seenOf(state, key) ?? 0) < sequence);
  if (higher.length === 0) return state;
  const others = state.seen.filter(({ key }) => !higher.includes(key));
  return { ...state, seen: [...others, ...higher.map((key) => ({ key, sequence }))].slice(-mostSeen) };
}

/**
 * Returns the number below which no release is accepted. Retired keys do not count, so that a thief of one cannot block later
 * releases. For state written before this field existed, the running release's number counts.
 */
export function newestSeen(state: ReleaseState, { keys }: Pick<Role, "keys">): number {
  if (state.seen.length === 0) return state.current?.sequence ?? 0;
  return Math.max(0, ...keys.map((key) => seenOf(state, key) ?? 0));
}

const seenOf = ({ seen }: ReleaseState, wanted: string) =>
  seen.find(({ key }) => key === wanted)?.sequence ?? null;

/** Notes that the coordinator accepted the release, so it works well enough to connect. */
export function noteWelcome(state: ReleaseState): ReleaseState {
  return isWatched(state) && !state.welcomed ? { ...state, welcomed: true } : state;
}

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

const mostReturns = 3;

/**
 * Makes the last good release current again, or returns null if the watched release is the only one. The machine may have been
 * at fault, so the release is tried again after `againMs`, and then after four times as long each time. The coordinator learns
 * of the rollback and does not offer the release again by itself.
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

/** Stops the current release because it is not permitted any more. The last good permitted one, if any, replaces it. */
export function withdrawCurrent(
  state: ReleaseState,
  { forbidden, ...fault }: Fault & { readonly forbidden: readonly string[] },
): ReleaseState {
  const { current } = state;
  if (current === null) return state;
  const without = remember(dropCurrent(state, forbidden), current, fault);
  return withReport(without, { version: current.version, state: "returned", reason: cut(fault.reason) });
}

/** Drops the current release for a reason that is not its fault, so that it may be installed again. */
export function dropCurrent(state: ReleaseState, forbidden: readonly string[] = []): ReleaseState {
  const { current } = state;
  const [next = null, previous = null] = [state.good, state.previous].filter(
    (kept) => kept !== null && kept.digest !== current?.digest && !forbidden.includes(kept.digest),
  );
  return { ...state, current: next, good: next, previous, ...unwatched };
}

/** Skips a report that equals the last one for the same version. */
export function withReport(state: ReleaseState, report: ReleaseReport): ReleaseState {
  const last = state.reports.findLast(({ version }) => version === report.version);
  if (last?.state === report.state && last.reason === report.reason) return state;
  return { ...state, reports: [...state.reports, report].slice(-maxReleaseReports) };
}

export function withoutOffer(state: ReleaseState, digest: string | null): ReleaseState {
  return state.offered?.digest === digest ? { ...state, offered: null } : state;
}

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
