/**
 * The crawlers' round-trip times to each other, as they measured them: for each crawler a short row of whom it knows,
 * ordered by slot. Both directions are one path: the smaller of the two measurements counts, since congestion only
 * adds. What was measured earlier is replaced, direction by direction.
 *
 * A fleet of up to 724 keeps every pair. Of a larger one each crawler keeps what it measured of so many others, and
 * forgets the one that it left alone longest: its landmarks and neighbours are measured again and again, so it is
 * never these. Memory grows with the crawlers, not with their square: 24 bytes an entry, some 6 KB a crawler of 10,000
 * (test/bench/results/delegation-cost.md).
 */
import type { CrawlerId } from "#core/ids";
import { smallestOf } from "#core/small-collections";

/** Pairs that a fleet may keep, however they are shared out: 724 crawlers keep all of theirs. */
const pairsInAll = 2 ** 19;

/** What a crawler of the largest fleet keeps: landmarks, neighbours, and four turns' worth of the others. */
const leastKeptByEach = 96;

/** The others that one crawler keeps its measurements of, in a fleet of this size; infinite where it keeps all. */
export function peersKeptByEach(crawlers: number): number {
  const share = Math.floor(pairsInAll / Math.max(1, crawlers));
  return share >= crawlers ? Number.POSITIVE_INFINITY : Math.max(leastKeptByEach, share);
}

export interface MeasuredPeer {
  readonly from: CrawlerId;
  readonly to: CrawlerId;
  readonly rttMs: number;
}

/** Of a crawler: whom it knows, nearest first, from the position `from` up to, not including, `to` of longer columns. */
export interface NearestStretch {
  readonly slots: Int32Array;
  readonly rttsMs: Float64Array;
  readonly from: number;
  readonly to: number;
}

/** Of a crawler: whom it has to do with, by ascending slot, the first `length` of both columns. */
export interface KnownPeers {
  readonly length: number;
  readonly peers: Int32Array;
  /** NaN: neither side has measured the other so far. */
  readonly bestMs: Float64Array;
}

/** Nearest peers that are kept at hand for a crawler. */
const mostAtHand = 32;

/** They are not known, or no longer: something changed in the crawler's row. */
const stale = -1;

export class PeerMatrix {
  readonly #slots = new Map<CrawlerId, number>();
  readonly #ids: CrawlerId[] = [];
  readonly #rows: PeerRow[] = [];
  readonly #keptByEach: (crawlers: number) => number;
  #scratch = new Float64Array(0);
  #revision = 0;
  /** Of each slot the nearest at hand, side by side: rounds ask for those of a hundred crawlers in no order. */
  readonly #nearest = {
    from: 0,
    to: 0,
    counts: new Int8Array(0),
    slots: new Int32Array(0),
    rttsMs: new Float64Array(0),
  };

  /** `keptByEach`: measurements that a crawler keeps in a fleet of this size. */
  constructor(keptByEach: (crawlers: number) => number = peersKeptByEach) {
    this.#keptByEach = keptByEach;
  }

  /** Of given measurements, all of which it keeps. */
  static of(measurements: readonly MeasuredPeer[]): PeerMatrix {
    const matrix = new PeerMatrix(() => Number.POSITIVE_INFINITY);
    for (const { from, to, rttMs } of measurements) {
      const [a, b] = [matrix.slotOf(from), matrix.slotOf(to)];
      if (!(matrix.measuredMsAt(a, b) <= rttMs)) matrix.learn(a, b, rttMs, 0);
    }
    return matrix;
  }

  /** Counts up whenever an RTT becomes known, is forgotten, or changes by more than jitter: what was made from the rows is old then. */
  get revision(): number {
    return this.#revision;
  }

  get size(): number {
    return this.#ids.length;
  }

  /** The slots of all crawlers that were ever named; slots stay. */
  get slots(): ReadonlyMap<CrawlerId, number> {
    return this.#slots;
  }

  /** Entries of all rows. A pair that is known has two. */
  get entries(): number {
    let entries = 0;
    for (const row of this.#rows) entries += row.length;
    return entries;
  }

  /** What the rows take, in bytes. */
  get bytes(): number {
    const { counts, slots, rttsMs } = this.#nearest;
    let bytes = this.#scratch.byteLength + counts.byteLength + slots.byteLength + rttsMs.byteLength;
    for (const row of this.#rows) bytes += row.bytes;
    return bytes;
  }

  /** The crawler's slot, a new one where it has none. */
  slotOf(crawlerId: CrawlerId): number {
    const known = this.#slots.get(crawlerId);
    if (known !== undefined) return known;
    const slot = this.#ids.push(crawlerId) - 1;
    this.#slots.set(crawlerId, slot);
    this.#rows.push(new PeerRow());
    return slot;
  }

  slotsOf(crawlerIds: readonly CrawlerId[]): Int32Array {
    return Int32Array.from(crawlerIds, (crawlerId: CrawlerId) => this.slotOf(crawlerId));
  }

  crawlerAt(slot: number): CrawlerId {
    return this.#ids[slot]!;
  }

  /** A measurement in ms; what is none (negative, NaN, of a crawler to itself) is left out. */
  learn(from: number, to: number, rttMs: number, atMs: number): void {
    if (!(rttMs >= 0) || !Number.isFinite(rttMs) || from === to) return;
    const row = this.#rows[from]!;
    const back = this.#rows[to]!;
    const at = row.placeFor(to);
    const backAt = back.placeFor(from);
    row.ownMs[at] = rttMs;
    const backMs = back.ownMs[backAt]!;
    const best = Number.isNaN(backMs) ? rttMs : Math.min(backMs, rttMs);
    this.#setBest(from, at, best);
    this.#setBest(to, backAt, best);
    this.touch(from, to, atMs);
  }

  /** It was measured, or asked for, at this time. */
  touch(from: number, to: number, atMs: number): void {
    const row = this.#rows[from]!;
    row.touch(row.placeFor(to), Math.max(1, Math.floor(atMs / 1000)));
    const most = this.#keptByEach(this.#ids.length);
    while (row.touched > most) this.#forget(from, row.longestAlone(to));
  }

  /** All that this slot and the others measured of each other. */
  forget(slot: number): void {
    const { peers, length } = this.#rows[slot]!;
    for (const peer of peers.slice(0, length))
      for (const [from, to] of [
        [slot, peer],
        [peer, slot],
      ] as const)
        if (this.#rows[from]!.find(to) >= 0) this.#forget(from, to);
  }

  /** The RTT between two crawlers in ms; null where neither has measured the other. */
  rttMs(a: CrawlerId, b: CrawlerId): number | null {
    return knownMs(this.rttMsAt(this.#slots.get(a) ?? -1, this.#slots.get(b) ?? -1));
  }

  /** What the first has measured to the second by itself, in ms; null: nothing. */
  measuredMs(from: CrawlerId, to: CrawlerId): number | null {
    return knownMs(this.measuredMsAt(this.#slots.get(from) ?? -1, this.#slots.get(to) ?? -1));
  }

  /** The RTT between two slots in ms; NaN where neither has measured the other. */
  rttMsAt(a: number, b: number): number {
    const [one, other] = [this.#rows[a], this.#rows[b]];
    if (one === undefined || other === undefined) return Number.NaN;
    // A landmark's row is long.
    return one.length <= other.length ? one.bestOf(b) : other.bestOf(a);
  }

  /** The RTTs from one slot to many, in their order; NaN where unknown. */
  rttsBetween(from: number, to: Int32Array): Float64Array {
    const rttsMs = new Float64Array(to.length).fill(Number.NaN);
    const row = this.#rows[from];
    if (row === undefined) return rttsMs;
    if (row.length > 8 * to.length) {
      for (let index = 0; index < to.length; index++) rttsMs[index] = row.bestOf(to[index]!);
      return rttsMs;
    }
    if (this.#scratch.length < this.#ids.length)
      this.#scratch = new Float64Array(Math.ceil(1.25 * this.#ids.length)).fill(Number.NaN);
    const scratch = this.#scratch;
    const { length, peers, bestMs } = row;
    for (let at = 0; at < length; at++) scratch[peers[at]!] = bestMs[at]!;
    for (let index = 0; index < to.length; index++) {
      const slot = to[index]!;
      if (slot >= 0) rttsMs[index] = scratch[slot]!;
    }
    for (let at = 0; at < length; at++) scratch[peers[at]!] = Number.NaN;
    return rttsMs;
  }

  /** Every slot that the RTT to is known, in ascending order. */
  eachKnown(slot: number, visit: (peer: number, rttMs: number) => void): void {
    const row = this.#rows[slot];
    if (row === undefined) return;
    for (let at = 0; at < row.length; at++)
      if (!Number.isNaN(row.bestMs[at]!)) visit(row.peers[at]!, row.bestMs[at]!);
  }

  /** The row of a slot as it stands, to be read at once. */
  knownTo(slot: number): KnownPeers {
    return this.#rows[slot] ?? nobody;
  }

  /** Slots of the nearest that are known, nearest first. */
  nearestOf(slot: number): Int32Array {
    const { from, to, slots } = this.nearestAtHand(slot);
    return slots.subarray(from, to);
  }

  /** The nearest that are known, kept until something changes there; good until the next question. */
  nearestAtHand(slot: number): NearestStretch {
    const nearest = this.#nearest;
    if (slot < 0 || slot >= this.#rows.length) {
      nearest.from = 0;
      nearest.to = 0;
      return nearest;
    }
    if (slot >= nearest.counts.length) this.#growNearest();
    if (nearest.counts[slot] === stale) this.#findNearest(slot);
    nearest.from = slot * mostAtHand;
    nearest.to = nearest.from + nearest.counts[slot]!;
    return nearest;
  }

  #findNearest(slot: number): void {
    const { counts, slots, rttsMs } = this.#nearest;
    const { bestMs, peers, length } = this.#rows[slot]!;
    const order = smallestOf(bestMs.subarray(0, length), mostAtHand);
    for (let rank = 0; rank < order.length; rank++) {
      slots[slot * mostAtHand + rank] = peers[order[rank]!]!;
      rttsMs[slot * mostAtHand + rank] = bestMs[order[rank]!]!;
    }
    counts[slot] = order.length;
  }

  #growNearest(): void {
    const { counts, slots, rttsMs } = this.#nearest;
    const crawlers = Math.ceil(1.25 * this.#rows.length);
    this.#nearest.counts = new Int8Array(crawlers).fill(stale);
    this.#nearest.counts.set(counts);
    this.#nearest.slots = new Int32Array(crawlers * mostAtHand);
    this.#nearest.slots.set(slots);
    this.#nearest.rttsMs = new Float64Array(crawlers * mostAtHand);
    this.#nearest.rttsMs.set(rttsMs);
  }

  /** What one slot has measured to another by itself, in ms; NaN: nothing. */
  measuredMsAt(from: number, to: number): number {
    const row = this.#rows[from];
    const at = row?.find(to) ?? -1;
    return at < 0 ? Number.NaN : row!.ownMs[at]!;
  }

  /** To how many others a slot's RTT is known. */
  knownOf(slot: number): number {
    return this.#rows[slot]?.known ?? 0;
  }

  /** When one direction was last measured or asked for, in seconds; 0: never. */
  touchedAt(from: number, to: number): number {
    const row = this.#rows[from];
    const at = row?.find(to) ?? -1;
    return at < 0 ? 0 : row!.ownAt[at]!;
  }

  #setBest(slot: number, at: number, bestMs: number): void {
    const row = this.#rows[slot]!;
    if (isOther(row.bestMs[at]!, bestMs)) this.#revision += 1;
    row.setBest(at, bestMs);
    if (slot < this.#nearest.counts.length) this.#nearest.counts[slot] = stale;
  }

  /** What `from` measured of the other is forgotten; what the other measured of it is the other's to keep. */
  #forget(from: number, to: number): void {
    const row = this.#rows[from]!;
    const back = this.#rows[to]!;
    const at = row.find(to);
    const backAt = back.find(from);
    row.ownMs[at] = Number.NaN;
    row.touch(at, 0);
    const leftMs = backAt < 0 ? Number.NaN : back.ownMs[backAt]!;
    this.#setBest(from, at, leftMs);
    row.dropEmpty(at);
    if (backAt < 0) return;
    this.#setBest(to, backAt, leftMs);
    back.dropEmpty(backAt);
  }
}

const knownMs = (rttMs: number): number | null => (Number.isNaN(rttMs) ? null : rttMs);

const nobody: KnownPeers = { length: 0, peers: new Int32Array(0), bestMs: new Float64Array(0) };

/** NaN to NaN is no change. */
function isOther(beforeMs: number, nowMs: number): boolean {
  if (Number.isNaN(nowMs)) return !Number.isNaN(beforeMs);
  return !(Math.abs(nowMs - beforeMs) <= 2 + 0.1 * beforeMs);
}

/** One crawler's peers in ascending order of their slots; a place in it is good until the next entry comes or goes. */
class PeerRow {
  length = 0;
  peers = new Int32Array(0);
  /** The smaller of both directions (NaN: neither is known). */
  bestMs = new Float64Array(0);
  /** What this crawler measured (NaN: nothing). */
  ownMs = new Float64Array(0);
  /** When it last measured or was asked to, in seconds; 0: never. */
  ownAt = new Uint32Array(0);
  /** Entries with a best RTT. */
  known = 0;
  /** Entries that it measured or was asked to. */
  touched = 0;

  get bytes(): number {
    return this.peers.byteLength + this.bestMs.byteLength + this.ownMs.byteLength + this.ownAt.byteLength;
  }

  bestOf(peer: number): number {
    const at = this.find(peer);
    return at < 0 ? Number.NaN : this.bestMs[at]!;
  }

  /** Where the peer stands, −1 where it does not. */
  find(peer: number): number {
    const at = this.#firstFrom(peer);
    return at < this.length && this.peers[at] === peer ? at : -1;
  }

  /** Where the peer stands; it gets an entry where it has none. */
  placeFor(peer: number): number {
    const at = this.#firstFrom(peer);
    if (at < this.length && this.peers[at] === peer) return at;
    if (this.length === this.peers.length) this.#grow();
    this.#shift(at, at + 1);
    this.peers[at] = peer;
    this.bestMs[at] = Number.NaN;
    this.ownMs[at] = Number.NaN;
    this.ownAt[at] = 0;
    this.length += 1;
    return at;
  }

  setBest(at: number, bestMs: number): void {
    this.known += Number(Number.isNaN(this.bestMs[at]!)) - Number(Number.isNaN(bestMs));
    this.bestMs[at] = bestMs;
  }

  touch(at: number, atSeconds: number): void {
    this.touched += Number(this.ownAt[at] === 0) - Number(atSeconds === 0);
    this.ownAt[at] = atSeconds;
  }

  /** The peer that this crawler left alone longest, but for one. */
  longestAlone(but: number): number {
    let found = -1;
    for (let at = 0; at < this.length; at++) {
      if (this.ownAt[at] === 0 || this.peers[at] === but) continue;
      if (found < 0 || this.ownAt[at]! < this.ownAt[found]!) found = at;
    }
    return this.peers[found]!;
  }

  /** Takes the entry out where nothing is known of the pair and nobody was asked. */
  dropEmpty(at: number): void {
    if (this.ownAt[at] !== 0 || !Number.isNaN(this.bestMs[at]!)) return;
    this.#shift(at + 1, at);
    this.length -= 1;
  }

  /** The first place whose peer is not below this one. */
  #firstFrom(peer: number): number {
    const { peers } = this;
    let low = 0;
    let high = this.length;
    // Crawlers mostly come in the order of their slots.
    if (high > 0 && peers[high - 1]! < peer) return high;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (peers[middle]! < peer) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  #shift(from: number, to: number): void {
    this.peers.copyWithin(to, from, this.length);
    this.bestMs.copyWithin(to, from, this.length);
    this.ownMs.copyWithin(to, from, this.length);
    this.ownAt.copyWithin(to, from, this.length);
  }

  #grow(): void {
    const places = this.length + Math.max(8, this.length >> 2);
    const grown = <Column extends Int32Array | Float64Array | Uint32Array>(column: Column, made: Column) => {
      made.set(column);
      return made;
    };
    this.peers = grown(this.peers, new Int32Array(places));
    this.bestMs = grown(this.bestMs, new Float64Array(places));
    this.ownMs = grown(this.ownMs, new Float64Array(places));
    this.ownAt = grown(this.ownAt, new Uint32Array(places));
  }
}
