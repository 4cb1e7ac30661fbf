/** A generated fleet that measures itself turn by turn (delegation/peer-plan), and how well `nearest` does meanwhile. */
import { type CandidateFleet, candidateFleet, PeerRttTable } from "#coordinator/delegation/fleet";
import { PeerMatrix } from "#coordinator/delegation/peer-matrix";
import { landmarksOf, PeerSearch, peerRefreshMs, peersFor } from "#coordinator/delegation/peers";
import {
  type DelegatedTarget,
  type Figures,
  figuresOf,
  idOf,
  placementNumbers,
  SimulationRun,
  shuffledIndices,
} from "#coordinator/delegation/simulation/run";
import type { SimulationInstance } from "#coordinator/delegation/simulation/simulation";
import { seededRandom } from "#core/random";

const startMs = Date.UTC(2030, 0, 1);

export class MeasuredFleet {
  readonly #instance: SimulationInstance;
  readonly #matrix = new PeerMatrix();
  readonly #online;
  #turns = 0;

  constructor(instance: SimulationInstance) {
    this.#instance = instance;
    this.#online = instance.crawlers.map((_, index) => idOf(index));
  }

  /** Everybody measures what the plan says; returns the most that one of them had to. */
  turn(): number {
    const nowMs = startMs + this.#turns * peerRefreshMs;
    const turn = { matrix: this.#matrix, online: this.#online, landmarks: landmarksOf(this.#online), nowMs };
    this.#turns += 1;
    const search = new PeerSearch(turn);
    let most = 0;
    for (const [from, crawlerId] of this.#online.entries()) {
      const peers = peersFor(crawlerId, turn, { search });
      most = Math.max(most, peers.length);
      for (const peer of peers) {
        const to = peer - 1;
        const rttMs = this.#instance.crawlerRtt[from]![to]!;
        this.#matrix.learn(this.#matrix.slotOf(crawlerId), this.#matrix.slotOf(peer), rttMs, nowMs);
      }
    }
    return most;
  }

  /** Share of the pairs that somebody has measured. */
  knownShare(): number {
    const size = this.#online.length;
    const known = this.#online.reduce((sum, one) => sum + this.#matrix.knownOf(this.#matrix.slotOf(one)), 0);
    return known / (size * (size - 1));
  }

  /** With what is measured so far; the rest is unknown to the policy. */
  figures(seed: number): Figures {
    const fleet = candidateFleet(this.#online, PeerRttTable.over(this.#matrix));
    return figuresWith(this.#instance, fleet, seed);
  }

  /** With every pair measured. */
  fullFigures(seed: number): Figures {
    const full = this.#instance.crawlerRtt.flatMap((row, from) =>
      row.map((rttMs, to) => ({ from: idOf(from), to: idOf(to), rttMs })),
    );
    return figuresWith(this.#instance, candidateFleet(this.#online, new PeerRttTable(full)), seed);
  }
}

function figuresWith(instance: SimulationInstance, fleet: CandidateFleet, seed: number): Figures {
  const draw = seededRandom(seed);
  const placementOf = placementNumbers();
  const run = new SimulationRun({
    variant: { policy: "nearest" },
    fleet,
    crawlerPlacements: instance.crawlers.map(placementOf),
    observe: ({ rttMs }) => ({ rttMs }),
    draw,
  });
  const delegated = shuffledIndices(instance.targets.length, draw).map((target): DelegatedTarget => {
    const host = instance.targets[target]!;
    const rttsMs = host.rtt;
    const bestRttMs = Array.from(rttsMs).reduce((least, rttMs) => Math.min(least, rttMs));
    return run.delegate({ target, placement: placementOf(host), rttsMs, bestRttMs });
  });
  return figuresOf(delegated);
}
