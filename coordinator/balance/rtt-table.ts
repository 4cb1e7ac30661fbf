/**
 * What is known of the RTTs between crawlers and subnets, packed for planning: about 30 bytes a subnet. Rows are
 * worked out when they are asked for: a measured RTT where there is one, else a predicted one.
 */
import type { CrawlerId } from "#core/ids";
import type { BalanceSubnet } from "./plan.ts";
import {
  boundsFor,
  boundsInto,
  LearnedOffsets,
  type Measurements,
  middleOf,
  nearestOf,
  predictionSpreadMs,
  unknownRttMs,
  unmeasurableMs,
} from "./predict-rtt.ts";

/** Round-trip time (ms) between two crawlers, either way round; undefined when it was never measured. */
export type CrawlerRtt = (a: CrawlerId, b: CrawlerId) => number | undefined;

/** As many as the packed form can tell apart. */
const maxCrawlers = 65_535;

export class RttTable {
  /** All crawlers that were named, by index. */
  readonly crawlerIds: CrawlerId[] = [];
  readonly #indexOf = new Map<CrawlerId, number>();
  readonly #crawlerRttMs: CrawlerRtt;
  readonly #apartMs: Float64Array[] = [];
  /** Measurements of row r stand at `#starts[r]` up to `#ends[r]`. */
  #starts = new Float64Array(64);
  #ends = new Float64Array(64);
  /** By row a small number that stands for the holder, -1: none. */
  #holders = new Int32Array(64);
  readonly #holderIndexes = new Map<number, number>();
  readonly #holderIds: number[] = [];
  #crawlers = new Uint16Array(256);
  #rttsMs = new Float64Array(256);
  #rows = 0;
  /** Rows that nobody measured: the subnet is taken to stand beside its crawler. */
  readonly #guessed = new Set<number>();
  #measurements = 0;
  #offsets = new LearnedOffsets();
  #least = new Float64Array(0);
  #most = new Float64Array(0);
  #noOffsets = new Float64Array(0);
  /** By crawler the others, the nearest first, those at an unknown distance last; worked out when asked for. */
  #neighbours: (Uint16Array | undefined)[] = [];

  constructor(crawlerRttMs: CrawlerRtt) {
    this.#crawlerRttMs = crawlerRttMs;
  }

  /** The crawler's index; it gets one when it is named for the first time. */
  indexOf(crawlerId: CrawlerId): number {
    const known = this.#indexOf.get(crawlerId);
    if (known !== undefined) return known;
    const index = this.crawlerIds.length;
    if (index >= maxCrawlers) throw new RangeError(`balance: more than ${maxCrawlers} crawlers`);
    this.#indexOf.set(crawlerId, index);
    this.crawlerIds.push(crawlerId);
    this.#apartMs.length = 0;
    this.#neighbours = [];
    return index;
  }

  get measurements(): number {
    return this.#measurements;
  }

  /** Adds a row and returns its index. A subnet that nobody measured counts as beside its crawler. */
  add({ crawlerId, rttMs, holderId }: Pick<BalanceSubnet, "crawlerId" | "rttMs" | "holderId">): number {
    const row = this.#rows++;
    if (row >= this.#starts.length) this.#growRows();
    this.#starts[row] = this.#measurements;
    this.#holders[row] = holderId === undefined ? noHolder : this.#holderIndex(holderId);
    if (rttMs.size === 0) {
      this.#guessed.add(row);
      this.#append(this.indexOf(crawlerId), 0);
    }
    for (const [witness, ms] of rttMs) this.#append(this.indexOf(witness), ms);
    this.#ends[row] = this.#measurements;
    return row;
  }

  /** What was measured of a row, in the order in which it came. */
  measuredOf(row: number): Map<CrawlerId, number> {
    const measured = new Map<CrawlerId, number>();
    if (this.#guessed.has(row)) return measured;
    for (let at = this.#starts[row]!; at < this.#ends[row]!; at++) {
      measured.set(this.crawlerIds[this.#crawlers[at]!]!, this.#rttsMs[at]!);
    }
    return measured;
  }

  isMeasured(row: number, crawler: number): boolean {
    return !Number.isNaN(this.measuredMs(row, crawler));
  }

  /** NaN where the crawler did not measure the subnet. */
  measuredMs(row: number, crawler: number): number {
    for (let at = this.#starts[row]!; at < this.#ends[row]!; at++) {
      if (this.#crawlers[at] === crawler) return this.#guessed.has(row) ? Number.NaN : this.#rttsMs[at]!;
    }
    return Number.NaN;
  }

  /** Learns anew how predictions err, from these rows. Rows asked for from now on follow it. */
  learn(rows: Iterable<number>): void {
    this.#offsets = new LearnedOffsets();
    for (const row of rows) this.#offsets.learn(this.#known(row), this.#holders[row]!);
  }

  /** Measurements that predictions were learned from. */
  get learnedFrom(): number {
    return this.#offsets.measurements;
  }

  /** Writes the RTT (ms) of every crawler to the subnet of this row. */
  rttsInto(row: number, rttsMs: Float64Array): void {
    const known = this.#known(row);
    this.#boundsOf(known);
    const [least, most, size] = [this.#least, this.#most, rttsMs.length];
    const nearest = nearestOf(known, -1);
    // Nobody is taken for nearer than the nearest that was measured.
    const nearestMs = leastOf(known);
    const offsetsMs = this.#offsets.generalFor(nearest, size) ?? this.#noOffsets;
    const unknownMs = unknownRttMs;
    for (let crawler = 0; crawler < size; crawler++) {
      const middle = (least[crawler]! + most[crawler]!) / 2;
      const rtt = (middle < Number.POSITIVE_INFINITY ? middle : unknownMs) + offsetsMs[crawler]!;
      rttsMs[crawler] = Math.max(nearestMs, rtt);
    }
    this.#offsets.eachOfHolder(
      { holder: this.#holders[row]!, nearest, crawlers: size },
      (crawler, offsetMs) => {
        rttsMs[crawler] = Math.max(nearestMs, middleOf(least[crawler]!, most[crawler]!) + offsetMs);
      },
    );
    for (let at = known.from; at < known.to; at++) rttsMs[known.crawlers[at]!] = known.rttsMs[at]!;
  }

  /**
   * Writes the RTTs (ms) of the likely crawlers alone, each as `rttsInto` has it: those that measured the subnet, those
   * that its holder's other subnets tell something of, and the nearest neighbours, about `breadth` of them, of the one
   * that measured least. Others can only be nearer where several measurements contradict it.
   */
  likelyInto(row: number, breadth: number, into: LikelyCrawlers): void {
    const known = this.#known(row);
    const nearest = nearestOf(known, -1);
    const size = this.crawlerIds.length;
    const nearestMs = leastOf(known);
    const offsetsMs = this.#offsets.generalFor(nearest, size);
    into.clear(size);
    for (let at = known.from; at < known.to; at++) into.put(known.crawlers[at]!, known.rttsMs[at]!);
    const measured = into.count;
    this.#offsets.eachOfHolder(
      { holder: this.#holders[row]!, nearest, crawlers: size },
      (crawler, offsetMs) => {
        if (!into.has(crawler)) into.put(crawler, Math.max(nearestMs, middleFor(known, crawler) + offsetMs));
      },
    );
    if (nearest < 0) return;
    const neighbours = this.#neighboursOf(nearest);
    const wanted = measured + breadth;
    for (let at = 0; at < neighbours.length && into.count < wanted; at++) {
      const crawler = neighbours[at]!;
      if (into.has(crawler)) continue;
      const offsetMs = offsetsMs === null ? 0 : offsetsMs[crawler]!;
      into.put(crawler, Math.max(nearestMs, middleFor(known, crawler) + offsetMs));
    }
  }

  /** The RTT (ms) of one crawler, as `rttsInto` has it. */
  rttMs(row: number, crawler: number): number {
    const known = this.#known(row);
    for (let at = known.from; at < known.to; at++)
      if (known.crawlers[at] === crawler) return known.rttsMs[at]!;
    const { least, most } = boundsFor(known, crawler);
    const nearest = nearestOf(known, -1);
    const crawlers = this.crawlerIds.length;
    let offsetMs = this.#offsets.generalFor(nearest, crawlers)?.[crawler] ?? 0;
    this.#offsets.eachOfHolder({ holder: this.#holders[row]!, nearest, crawlers }, (one, ms) => {
      if (one === crawler) offsetMs = ms;
    });
    return Math.max(leastOf(known), middleOf(least, most) + offsetMs);
  }

  /** What a move adds to the RTT (ms), and whether either of the two is only predicted. */
  difference(row: number, from: number, to: number): { addedRttMs: number; predicted: boolean } {
    const predicted = !(this.isMeasured(row, to) && this.isMeasured(row, from));
    return { addedRttMs: this.rttMs(row, to) - this.rttMs(row, from), predicted };
  }

  /** How far off the prediction for a crawler that did not measure may be (ms, standard deviation). */
  spreadMs(row: number, crawler: number): number {
    return predictionSpreadMs(this.#known(row), crawler);
  }

  #boundsOf(known: Measurements): void {
    if (this.#least.length !== this.crawlerIds.length) {
      this.#least = new Float64Array(this.crawlerIds.length);
      this.#most = new Float64Array(this.crawlerIds.length);
      this.#noOffsets = new Float64Array(this.crawlerIds.length);
    }
    boundsInto(known, this.#least, this.#most);
  }

  #known(row: number): Measurements {
    return {
      from: this.#starts[row]!,
      to: this.#ends[row]!,
      crawlers: this.#crawlers,
      rttsMs: this.#rttsMs,
      apartMs: this.#apart(),
    };
  }

  /** Made anew when crawlers were named since. */
  #apart(): readonly Float64Array[] {
    if (this.#apartMs.length === this.crawlerIds.length) return this.#apartMs;
    this.#apartMs.length = 0;
    for (const a of this.crawlerIds) {
      this.#apartMs.push(Float64Array.from(this.crawlerIds, (b) => this.#apartOf(a, b)));
    }
    return this.#apartMs;
  }

  #neighboursOf(crawler: number): Uint16Array {
    const known = this.#neighbours[crawler];
    if (known !== undefined) return known;
    const apartMs = this.#apart()[crawler]!;
    const farMs = (other: number) => (apartMs[other]! >= 0 ? apartMs[other]! : Number.POSITIVE_INFINITY);
    const others = Uint16Array.from(apartMs, (_, other) => other).filter((other) => other !== crawler);
    // Not by subtraction: of two that are unknown it is not a number.
    others.sort((a, b) => (farMs(a) < farMs(b) ? -1 : farMs(a) > farMs(b) ? 1 : a - b));
    this.#neighbours[crawler] = others;
    return others;
  }

  #apartOf(a: CrawlerId, b: CrawlerId): number {
    if (a === b) return 0;
    return this.#crawlerRttMs(a, b) ?? this.#crawlerRttMs(b, a) ?? Number.NaN;
  }

  /** As `add` was given it; null when it was given none. */
  holderOf(row: number): number | null {
    return this.#holderIds[this.#holders[row]!] ?? null;
  }

  #holderIndex(holderId: number): number {
    const known = this.#holderIndexes.get(holderId);
    if (known !== undefined) return known;
    this.#holderIds.push(holderId);
    this.#holderIndexes.set(holderId, this.#holderIds.length - 1);
    return this.#holderIds.length - 1;
  }

  #append(crawler: number, ms: number): void {
    if (this.#measurements >= this.#rttsMs.length) {
      this.#rttsMs = twice(this.#rttsMs);
      const crawlers = new Uint16Array(this.#rttsMs.length);
      crawlers.set(this.#crawlers);
      this.#crawlers = crawlers;
    }
    this.#crawlers[this.#measurements] = crawler;
    this.#rttsMs[this.#measurements++] = ms;
  }

  #growRows(): void {
    this.#starts = twice(this.#starts);
    this.#ends = twice(this.#ends);
    const holders = new Int32Array(this.#starts.length);
    holders.set(this.#holders);
    this.#holders = holders;
  }
}

const noHolder = -1;

/** Some crawlers and what a subnet costs them (ms), each once. */
export class LikelyCrawlers {
  count = 0;
  crawlers = new Uint16Array(64);
  costsMs = new Float64Array(64);
  #isIn = new Uint8Array(0);

  /** `fleet`: how many crawlers there are. */
  clear(fleet: number): void {
    if (this.#isIn.length !== fleet) {
      this.#isIn = new Uint8Array(fleet);
      this.crawlers = new Uint16Array(fleet);
      this.costsMs = new Float64Array(fleet);
    } else for (let at = 0; at < this.count; at++) this.#isIn[this.crawlers[at]!] = 0;
    this.count = 0;
  }

  /** Everybody, in their order. */
  putAll(fleet: number, costsInto: (costsMs: Float64Array) => void): void {
    this.clear(fleet);
    costsInto(this.costsMs);
    for (let crawler = 0; crawler < fleet; crawler++) this.crawlers[crawler] = crawler;
    this.#isIn.fill(1);
    this.count = fleet;
  }

  /** Infinite for one that is not in it. */
  costAt(crawler: number): number {
    const at = this.has(crawler) ? this.crawlers.indexOf(crawler) : -1;
    return this.costsMs[at] ?? Number.POSITIVE_INFINITY;
  }

  has(crawler: number): boolean {
    return this.#isIn[crawler] === 1;
  }

  put(crawler: number, costMs: number): void {
    this.#isIn[crawler] = 1;
    this.crawlers[this.count] = crawler;
    this.costsMs[this.count++] = costMs;
  }
}

/** What is predicted for a crawler that did not measure, before anything learned. */
function middleFor({ from, to, crawlers, rttsMs, apartMs }: Measurements, crawler: number): number {
  let least = 0;
  let most = Number.POSITIVE_INFINITY;
  for (let at = from; at < to; at++) {
    const rtt = rttsMs[at]!;
    if (rtt >= unmeasurableMs) continue;
    const apart = apartMs[crawlers[at]!]![crawler]!;
    if (Math.abs(apart - rtt) > least) least = Math.abs(apart - rtt);
    if (apart + rtt < most) most = apart + rtt;
  }
  return middleOf(least, most);
}

function leastOf({ from, to, rttsMs }: Measurements): number {
  let least = Number.POSITIVE_INFINITY;
  for (let at = from; at < to; at++) least = Math.min(least, rttsMs[at]!);
  return least;
}

function twice(values: Float64Array): Float64Array<ArrayBuffer> {
  const copy = new Float64Array(2 * values.length);
  copy.set(values);
  return copy;
}
