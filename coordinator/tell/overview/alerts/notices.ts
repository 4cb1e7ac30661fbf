/**
 * What people are told of alerts, and when. An alert is told when it begins, when it names more, and when it ends; what
 * begins or ends within a minute is one message, and what is over by then is in none. One that flaps is told once in half
 * an hour; what somebody has acknowledged or muted is not told.
 *
 *   begins ── a minute ──► told ── names more, half an hour since ──► told again ── ends ── a minute ──► told as ended
 */
import type { Acknowledgement, AlertSeverity } from "../alert-facts.ts";

export interface AlertState {
  readonly name: string;
  readonly severity: AlertSeverity;
  readonly words: string;
  readonly advice: string;
  /** All of them, as far as the rules name them. */
  readonly targets: readonly string[];
  readonly beganAt: Date;
  /** Null: it holds. */
  readonly endedAt: Date | null;
  /** People are to be told something since then; null: they know. */
  readonly pendingSince: Date | null;
  /** When they were last told that it holds. */
  readonly toldAt: Date | null;
  readonly toldTargets: readonly string[];
  /** As far as people know, it holds. */
  readonly isTold: boolean;
  readonly acknowledged: Acknowledgement | null;
}

/** What a rule finds at this moment. */
export type SeenAlert = Pick<AlertState, "name" | "severity" | "words" | "advice" | "targets">;

export interface Look {
  readonly now: Date;
  readonly found: readonly SeenAlert[];
  /** Rules that find something of which nobody is to be told, and nothing else. */
  readonly muted: ReadonlySet<string>;
  /** Severities that some channel is told of. */
  readonly heard: ReadonlySet<AlertSeverity>;
}

export interface NoticeRule {
  readonly digestMs: number;
  readonly againMs: number;
}

/** One alert in a message. */
export interface ToldAlert extends SeenAlert {
  readonly state: "began" | "ended";
  readonly since: string;
  /** Null: it holds. */
  readonly endedAt: string | null;
}

export interface NoticePlan {
  /** As they are from now on; those that are left out are forgotten. */
  readonly states: readonly AlertState[];
  /** Empty: no message is due. */
  readonly told: readonly ToldAlert[];
}

/** Names in it come from outside. */
const mostWords = 2000;

export function planNotices(known: readonly AlertState[], look: Look, rule: NoticeRule): NoticePlan {
  const seen = new Map(
    look.found.map((alert) => [alert.name, { ...alert, words: alert.words.slice(0, mostWords) }]),
  );
  const before = new Map(known.map((state) => [state.name, state]));
  const names = [...new Set([...before.keys(), ...seen.keys()])];
  const states = names.map((name) => {
    const state = stateNow(before.get(name), seen.get(name), look);
    return { ...state, pendingSince: isOwed(state, look, rule) ? (state.pendingSince ?? look.now) : null };
  });
  const isDue = states.some(
    ({ pendingSince }) => pendingSince !== null && since(pendingSince, look.now) >= rule.digestMs,
  );
  const told = isDue ? states.filter(({ pendingSince }) => pendingSince !== null) : [];
  return {
    states: states
      .map((state) => (told.includes(state) ? afterTelling(state, look.now) : state))
      .filter(isKept),
    told: told.map(toldAlert),
  };

  /** Of what has ended only that is kept which must not be told again yet. */
  function isKept({ endedAt, isTold, toldAt }: AlertState): boolean {
    if (endedAt === null || isTold) return true;
    return toldAt !== null && since(toldAt, look.now) < rule.againMs;
  }
}

const since = (then: Date, now: Date): number => now.getTime() - then.getTime();

function stateNow(
  before: AlertState | undefined,
  seen: SeenAlert | undefined,
  { now, muted }: Look,
): AlertState {
  if (seen === undefined) {
    const state = before!;
    // What is muted goes on, and nobody is told that it has ended.
    if (state.endedAt !== null || muted.has(state.name)) return state;
    return { ...state, endedAt: now, acknowledged: null };
  }
  if (before === undefined) return beganNow(seen, now);
  // As far as people know, one that is back before its end was told has not ended.
  if (before.endedAt !== null)
    return { ...before, ...seen, beganAt: before.isTold ? before.beganAt : now, endedAt: null };
  const { acknowledged } = before;
  const isCovered = acknowledged !== null && includesAll(acknowledged.targets, seen.targets);
  return { ...before, ...seen, acknowledged: isCovered ? acknowledged : null };
}

export const beganNow = (seen: SeenAlert, now: Date): AlertState => ({
  ...{ ...seen, beganAt: now, endedAt: null, pendingSince: null },
  ...{ toldAt: null, toldTargets: [], isTold: false, acknowledged: null },
});

/** There is something that people do not know, and may be told by now. */
function isOwed(state: AlertState, { now, muted, heard }: Look, { againMs }: NoticeRule): boolean {
  const { name, endedAt, isTold, toldAt, toldTargets, targets, acknowledged } = state;
  if (muted.has(name) && endedAt === null) return false;
  if (endedAt !== null) return isTold;
  if (acknowledged !== null || !heard.has(state.severity)) return false;
  if (isTold && includesAll(toldTargets, targets)) return false;
  return toldAt === null || since(toldAt, now) >= againMs;
}

function afterTelling(state: AlertState, now: Date): AlertState {
  if (state.endedAt !== null) return { ...state, pendingSince: null, isTold: false, toldTargets: [] };
  return { ...state, pendingSince: null, isTold: true, toldAt: now, toldTargets: state.targets };
}

export function toldAlert({
  name,
  severity,
  words,
  advice,
  targets,
  beganAt,
  endedAt,
}: AlertState): ToldAlert {
  return {
    ...{ name, severity, words, advice, targets },
    state: endedAt === null ? "began" : "ended",
    since: beganAt.toISOString(),
    endedAt: endedAt?.toISOString() ?? null,
  };
}

function includesAll(all: readonly string[], some: readonly string[]): boolean {
  const known = new Set(all);
  return some.every((one) => known.has(one));
}

/** In ms after the first, second … attempt that failed: what is not told within some three hours is told by nobody. */
const retryMs = [15_000, 60_000, 300_000, 900_000, 3_600_000, 7_200_000] as const;

export const mostTries = retryMs.length + 1;

/** `tries`: so far. `chance`: 0 to 1, so that many do not come back in the same moment. Null: it is given up. */
export function nextTryMs(tries: number, chance: number): number | null {
  const usual = retryMs[tries - 1];
  return usual === undefined ? null : Math.round(usual * (0.8 + 0.4 * chance));
}
