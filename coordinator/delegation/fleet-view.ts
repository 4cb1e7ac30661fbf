/**
 * What a round reads again and again of a fleet: per candidate the RTTs to the others and who stands nearest.
 * Made once a fleet and candidate, anew when the crawlers' RTTs changed.
 */
import type { CrawlerId } from "#core/ids";
import { smallestOf } from "#core/small-collections";
import { type CandidateFleet, rttsToCandidates } from "./fleet.ts";
import { type LearnedRtts, listedAsNearest } from "./policies/learned-rtts.ts";

/** A candidate seen as a place: what a target beside it would measure. */
export interface CandidatePlace {
  /** RTT in ms to every candidate, NaN where unknown; to itself `besideMs`. */
  readonly rttsMs: Float64Array;
  /** The nearest candidates, itself first. */
  readonly nearest: Int32Array;
}

/** A target beside a crawler is about so far from it. */
const besideMs = 1;

export class FleetView {
  readonly #fleet: CandidateFleet;
  readonly #places: (CandidatePlace | undefined)[] = [];
  #revision = -1;
  #learnedSlots = -1;
  #slotOf = new Int32Array(0);
  #indexOf = new Int32Array(0);

  constructor(fleet: CandidateFleet) {
    this.#fleet = fleet;
  }

  placeOf(index: number): CandidatePlace {
    if (this.#revision !== this.#fleet.peerRtts.revision) {
      this.#revision = this.#fleet.peerRtts.revision;
      this.#places.length = 0;
    }
    this.#places[index] ??= placeOf(this.#fleet, index);
    return this.#places[index];
  }

  /** The candidates' slots in what was learned. */
  slotsIn(learned: LearnedRtts): Int32Array {
    this.#follow(learned);
    return this.#slotOf;
  }

  /** The candidate of each slot, −1 for crawlers that are none. */
  indicesIn(learned: LearnedRtts): Int32Array {
    this.#follow(learned);
    return this.#indexOf;
  }

  #follow(learned: LearnedRtts): void {
    if (this.#learnedSlots === learned.slots) return;
    this.#slotOf = Int32Array.from(this.#fleet.candidates, (crawlerId: CrawlerId) =>
      learned.slotOf(crawlerId),
    );
    this.#indexOf = new Int32Array(learned.slots).fill(-1);
    this.#slotOf.forEach((slot, index) => {
      this.#indexOf[slot] = index;
    });
    this.#learnedSlots = learned.slots;
  }
}

const views = new WeakMap<CandidateFleet, WeakMap<LearnedRtts, FleetView>>();

export function viewOf(fleet: CandidateFleet, learned: LearnedRtts): FleetView {
  const known = views.get(fleet) ?? new WeakMap<LearnedRtts, FleetView>();
  views.set(fleet, known);
  const view = known.get(learned) ?? new FleetView(fleet);
  known.set(learned, view);
  return view;
}

function placeOf(fleet: CandidateFleet, index: number): CandidatePlace {
  const rttsMs = rttsToCandidates(fleet, index);
  rttsMs[index] = besideMs;
  return { rttsMs, nearest: smallestOf(rttsMs, listedAsNearest) };
}
