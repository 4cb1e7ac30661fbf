/**
 * A fleet without one of its crawlers has delegated every leaf of an instance; then that crawler joins and probes
 * the most promising leaves first. The figures say how many of the leaves that it is nearest to, by more than the
 * margin, it gets, and with how many probes.
 */
import {
  joinMarginMs,
  NewcomerFindings,
  type PossibleGain,
} from "#coordinator/place/balance/newcomer-search";
import {
  placementNumbers,
  type SimulationInstance,
  simulateDelegation,
} from "#coordinator/place/delegation/simulation/simulation";

export interface JoinSettings {
  /** Leaves asked about between two rankings. */
  readonly batch: number;
  /** The search ends when fewer than this share of the last `window` probes found something. */
  readonly leastYield: number;
  readonly window: number;
  /** It also ends when no leaf promises more than this. */
  readonly leastPromiseMs: number;
  /** Probes at most, as a share of all leaves. */
  readonly mostShare: number;
}

export interface JoinFigures {
  readonly leaves: number;
  /** Leaves that it is nearer to than their owner, by more than the margin. */
  readonly itsOwn: number;
  readonly gotBack: number;
  readonly probes: number;
  /** The share that it saved of all ms that it could save. */
  readonly savedShare: number;
}

interface Leaf extends PossibleGain {
  readonly newcomerRttMs: number;
}

export function joinAgain(
  instance: SimulationInstance,
  newcomer: number,
  settings: JoinSettings,
): JoinFigures {
  const leaves = leavesWithout(instance, newcomer);
  const own = placements(instance).crawlers[newcomer]!;
  const findings = new NewcomerFindings(own);
  const gain = (leaf: Leaf) => leaf.ownerRttMs - leaf.newcomerRttMs;
  const itsOwn = leaves.filter((leaf) => gain(leaf) > joinMarginMs);
  const open = new Set(leaves);
  const won: Leaf[] = [];
  const latest: boolean[] = [];
  let probes = 0;
  for (;;) {
    const ranked = [...open]
      .map((leaf) => ({ leaf, promiseMs: findings.promiseMs(leaf) }))
      .filter(({ promiseMs }) => promiseMs >= settings.leastPromiseMs)
      .sort((a, b) => b.promiseMs - a.promiseMs)
      .slice(0, settings.batch);
    if (ranked.length === 0 || probes >= settings.mostShare * leaves.length) break;
    for (const { leaf } of ranked) {
      open.delete(leaf);
      probes += 1;
      const isNearer = gain(leaf) > joinMarginMs;
      findings.note(leaf.placement, isNearer);
      if (isNearer) won.push(leaf);
      latest.push(isNearer);
    }
    const seen = latest.slice(-settings.window);
    const hits = seen.filter(Boolean).length;
    if (seen.length >= settings.window && hits < settings.leastYield * seen.length) break;
  }
  const sum = (list: readonly Leaf[]) => list.reduce((total, leaf) => total + gain(leaf), 0);
  return {
    leaves: leaves.length,
    itsOwn: itsOwn.length,
    gotBack: won.length,
    probes,
    savedShare: itsOwn.length === 0 ? 1 : sum(won) / sum(itsOwn),
  };
}

function placements(instance: SimulationInstance) {
  const placementOf = placementNumbers();
  return { crawlers: instance.crawlers.map(placementOf), targets: instance.targets.map(placementOf) };
}

/** Each leaf after the rounds of the smaller fleet: its owner, and the measurements. */
function leavesWithout(instance: SimulationInstance, newcomer: number): Leaf[] {
  const rest = instance.crawlers.map((_, index) => index).filter((index) => index !== newcomer);
  const asked = new Map<number, Map<number, number>>();
  const { chosen, arrival } = simulateDelegation(
    {
      crawlers: rest.map((index) => instance.crawlers[index]!),
      crawlerRtt: rest.map((from) => rest.map((to) => instance.crawlerRtt[from]![to]!)),
      targets: instance.targets.map((target) => ({
        ...target,
        rtt: rest.map((index) => target.rtt[index]!),
      })),
    },
    {
      policy: "nearest",
      observe: ({ target, crawler, rttMs }) => {
        asked.set(target, (asked.get(target) ?? new Map<number, number>()).set(crawler, rttMs));
        return { rttMs };
      },
    },
  );
  const { targets } = placements(instance);
  const leaves = new Map<string | number, Leaf>();
  for (const target of arrival) {
    const placement = targets[target]!;
    if (leaves.has(placement.subnetKey)) continue;
    const { rtt } = instance.targets[target]!;
    const known = asked.get(target) ?? new Map([[chosen[target]!, rtt[rest[chosen[target]!]!]!]]);
    leaves.set(placement.subnetKey, {
      placement,
      ownerRttMs: rtt[rest[chosen[target]!]!]!,
      measured: [...known].map(([crawler, rttMs]) => ({
        rttMs,
        peerRttMs: instance.crawlerRtt[newcomer]![rest[crawler]!]!,
      })),
      newcomerRttMs: rtt[newcomer]!,
    });
  }
  return [...leaves.values()];
}
