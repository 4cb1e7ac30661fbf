/**
 * How good a host's signals are, learnt from its visits: of the changes, the share that was signalled (recall), and of the
 * signals, the share that was of no change. A visit tells whether the page has changed, not how often nor what a signal
 * was of: what is likely of each is added to sums (expectation maximisation in steps, R. Neal, G. Hinton, "A view of the
 * EM algorithm", 1998), so that no history has to be read. All sources of a host share them.
 *
 * Signals are not heeded before they have proven themselves: beside the quality runs a likelihood ratio (A. Wald,
 * "Sequential tests of statistical hypotheses", 1945) of what visits found, by the quality against signals that say nothing.
 * Until then a page's fetches do not follow its signals, so that neither its change rate nor the quality is learnt from
 * visits that wrong signals brought on; and a flood of signals of a new host moves nothing.
 */
import type { SignalQuality } from "./crawl-value.ts";

/** Sums over visits, each expected: all that a host's quality is worked out from. */
export interface SignalSums {
  readonly signals: number;
  /** Of these, how many were of a change. */
  readonly trueSignals: number;
  /** Changes that nobody signalled. */
  readonly missedChanges: number;
  /** Logarithm of the likelihood ratio. */
  readonly evidence: number;
}

export const noSignalSums: SignalSums = { signals: 0, trueSignals: 0, missedChanges: 0, evidence: 0 };

/** Counts as much as so many signals and changes that were seen: half of the signals false, a third of the changes told. */
const prior = { signals: 2, trueSignals: 1, missedChanges: 2 } as const;

export function qualityOf(sums: SignalSums): SignalQuality {
  const trueSignals = prior.trueSignals + sums.trueSignals;
  return {
    recall: trueSignals / (trueSignals + prior.missedChanges + sums.missedChanges),
    falseShare: Math.max(0, 1 - trueSignals / (prior.signals + sums.signals)),
  };
}

/** Odds of a thousand to one. */
const enoughEvidence = Math.log(1000);

/** Null: what is signalled is not heeded. */
export function heededQuality(sums: SignalSums | null): SignalQuality | null {
  return sums !== null && sums.evidence >= enoughEvidence ? qualityOf(sums) : null;
}

export interface SignalledVisit {
  /** Since the visit before. */
  readonly signals: number;
  readonly hasChanged: boolean;
  /** Changes expected in the time between the visits, by the page's rate. */
  readonly expectedChanges: number;
}

/** After a longer time a page has changed in any case, and its visit says nothing of signals. */
const mostExpected = 2;

/** No single visit proves more than this. */
const mostProof = 2;

/** What a visit adds, by what is known of the host's signals. */
export function signalEvidence(visit: SignalledVisit, sums: SignalSums): SignalSums {
  const { signals, hasChanged, expectedChanges } = visit;
  if (!(expectedChanges > 0 && expectedChanges <= mostExpected)) return noSignalSums;
  const { recall, falseShare } = qualityOf(sums);
  const unsignalled = (1 - recall) * expectedChanges;
  const still = signals * Math.log(Math.max(1e-9, falseShare)) - unsignalled;
  // As it was: none of the signals was of a change, and none was missed.
  if (!hasChanged) return { ...noSignalSums, signals, evidence: proof(still + expectedChanges) };
  // That it changed leaves out that all signals were false and no change was missed.
  const possible = -Math.expm1(still);
  if (!(possible > 1e-9)) return { ...noSignalSums, signals, missedChanges: 1 };
  return {
    signals,
    trueSignals: Math.min(signals, (signals * (1 - falseShare)) / possible),
    missedChanges: unsignalled / possible,
    evidence: proof(Math.log(possible / -Math.expm1(-expectedChanges))),
  };
}

const proof = (logRatio: number) => Math.min(mostProof, Math.max(-mostProof, logRatio));

/** What was seen long ago counts less: beyond so many, sums are halved, so that a host that changes its ways is noticed. */
export const mostRemembered = 400;

/** Signals that said nothing for long do not have to make up for all of it. */
const leastEvidence = -enoughEvidence;

export function addSignalSums(a: SignalSums, b: SignalSums): SignalSums {
  const [signals, trueSignals] = [a.signals + b.signals, a.trueSignals + b.trueSignals];
  const missedChanges = a.missedChanges + b.missedChanges;
  const part = Math.max(signals, trueSignals + missedChanges) > mostRemembered ? 0.5 : 1;
  return {
    signals: part * signals,
    trueSignals: part * trueSignals,
    missedChanges: part * missedChanges,
    evidence: Math.max(leastEvidence, part * (a.evidence + b.evidence)),
  };
}
