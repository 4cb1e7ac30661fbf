/**
 * The measured round-trip times between crawlers: for each crawler a short row of peers, ordered by slot. The smaller of the
 * two directions' latest measurements counts, since congestion only adds.
 *
 * A fleet of up to 724 keeps every pair. In a larger one each crawler keeps a limited number of peers and forgets the one
 * measured longest ago, which is never a landmark or a neighbour, as these are measured again and again. An entry takes 24
 * bytes, and a crawler of 10,000 some 6 KB (test/bench/results/delegation-cost.md).
 */
import type { CrawlerId } from "#core/ids";
import { smallestOf } from "#core/small-collections";

/** Total pairs kept: 724 crawlers keep all of theirs. */
const pairsInAll = 2 ** 19;

/** Peers kept per crawler in the largest fleet: landmarks, neighbours and four refresh intervals of others. */
const leastKeptByEach = 96;

/** Maximum peers kept per crawler in a fleet of `crawlers`. Infinite if all are kept. */
export function peersKeptByEach(crawlers: number): number {
  const share = Math.floor(pairsInAll / Math.max(1, crawlers));
  return share >= crawlers ? Number.POSITIVE_INFINITY : Math.max(leastKeptByEach, share);
}

export interface MeasuredPeer {
  readonly from: CrawlerId;
  readonly to: CrawlerId;
  readonly rttMs: number;
}

/** A crawler's known peers, nearest first, from `from` up to but excluding `to`. */
interface NearestStretch {
  readonly slots: Int32Array;
  readonly rttsMs: Float64Array;
  readonly from: number;
  readonly to: number;
}

/** A crawler's peers by ascending slot: the first `length` entries of both columns. */
interface KnownPeers {
  readonly length: number;
  readonly peers: Int32Array;
  /** NaN if neither side has measured the other. */
  readonly bestMs: Float64Array;
}

/** Maximum nearest peers cached per crawler. */
const mostAtHand = 32;

/** Marks a cache that is missing or outdated. */
const stale = -1;

export class PeerMatrix {
  readonly #slots = new Map<CrawlerId, number>();
  readonly #ids: CrawlerId[] = [];
  readonly #rows: PeerRow[] = [];
  readonly #keptByEach: (crawlers: number) => number;
  #scratch = new Float64Array(0);
  #revision = 0;
  /** The cached nearest per slot, in one array, because rounds read those of a hundred crawlers in any order. */
  readonly #nearest = {
    from: 0,
    to: 0,
    counts: new Int8Array(0),
    slots: new Int32Array(0),
    rttsMs: new Float64Array(0),
  };

  /** `keptByEach` gives the measurements kept per crawler by fleet size. */
  constructor(keptByEach: (crawlers: number) => number = peersKeptByEach) {
    this.#keptByEach = keptByEach;
  }

  /** Keeps all of the given measurements. */
  static of(measurements: readonly MeasuredPeer[]): PeerMatrix {
    const matrix = new PeerMatrix(() => Number.POSITIVE_INFINITY);
    for (const { from, to, rttMs } of measurements) {
      const [a, b] = [matrix.slotOf(from), matrix.slotOf(to)];
      if (!(matrix.measuredMsAt(a, b) <= rttMs)) matrix.learn(a, b, rttMs, 0);
    }
    return matrix;
  }

  /** Increases when an RTT becomes known, is forgotten or changes by more than jitter, so that derived data is outdated. */
  get revision(): number {
    return this.#revision;
  }

  get size(): number {
    return this.#ids.length;
  }

  /** Slots of all crawlers ever named. They never change. */
  get slots(): ReadonlyMap<CrawlerId, number> {
    return this.#slots;
  }

  get entries(): number {
    let entries = 0;
    for (const row of this.#rows) entries += row.length;
    return entries;
  }

  get bytes(): number {
    const { counts, slots, rttsMs } = this.#nearest;
    let bytes = this.#scratch.byteLength + counts.byteLength + slots.byteLength + rttsMs.byteLength;
    for (const row of this.#rows) bytes += row.bytes;
    return bytes;
  }

  /** Assigns a slot to a new crawler. */
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

  /** Takes an RTT in ms. Ignores invalid ones (negative, NaN, to itself). */
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

  /** Records that a measurement was made or requested at `atMs`. */
  touch(from: number, to: number, atMs: number): void {
    const row = this.#rows[from]!;
    row.touch(row.placeFor(to), Math.max(1, Math.floor(atMs / 1000)));
    const most = this.#keptByEach(this.#ids.length);
    while (row.touched > most) this.#forget(from, row.longestAlone(to));
  }

  /** Forgets all measurements from and to this slot. */
  forget(slot: number): void {
    const { peers, length } = this.#rows[slot]!;
    for (const peer of peers.slice(0, length))
      for (const [from, to] of [
        [slot, peer],
        [peer, slot],
      ] as const)
        if (this.#rows[from]!.find(to) >= 0) this.#forget(from, to);
  }

  /** RTT in ms between two crawlers. Null if neither has measured the other. */
  rttMs(a: CrawlerId, b: CrawlerId): number | null {
    return knownMs(this.rttMsAt(this.#slots.get(a) ?? -1, this.#slots.get(b) ?? -1));
  }

  /** The RTT in ms that the first crawler measured to the second, or null. */
  measuredMs(from: CrawlerId, to: CrawlerId): number | null {
    return knownMs(this.measuredMsAt(this.#slots.get(from) ?? -1, this.#slots.get(to) ?? -1));
  }

  /** RTT in ms between two slots. NaN if neither has measured the other. */
  rttMsAt(a: number, b: number): number {
    const [one, other] = [this.#rows[a], this.#rows[b]];
    if (one === undefined || other === undefined) return Number.NaN;
    // Landmarks have long rows, so the shorter row is searched.
    return one.length <= other.length ? one.bestOf(b) : other.bestOf(a);
  }

  /** RTTs from one slot to many, in order. NaN if unknown. */
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

  eachKnown(slot: number, visit: (peer: number, rttMs: number) => void): void {
    const row = this.#rows[slot];
    if (row === undefined) return;
    for (let at = 0; at < row.length; at++)
      if (!Number.isNaN(row.bestMs[at]!)) visit(row.peers[at]!, row.bestMs[at]!);
  }

  /** The slot's row. Valid until the next change. */
  knownTo(slot: number): KnownPeers {
    return this.#rows[slot] ?? nobody;
  }

  /** Slots with a known RTT, nearest first. */
  nearestOf(slot: number): Int32Array {
    const { from, to, slots } = this.nearestAtHand(slot);
    return slots.subarray(from, to);
  }

  /** Cached until something changes. Valid until the next call. */
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

  /** The RTT in ms that one slot measured to another. NaN for none. */
  measuredMsAt(from: number, to: number): number {
    const row = this.#rows[from];
    const at = row?.find(to) ?? -1;
    return at < 0 ? Number.NaN : row!.ownMs[at]!;
  }

  knownOf(slot: number): number {
    return this.#rows[slot]?.known ?? 0;
  }

  /** When this direction was last measured or requested, in seconds. 0 for never. */
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

  /** Forgets what `from` measured. The peer keeps its own measurement. */
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

/** A change from NaN to NaN does not count. */
function isOther(beforeMs: number, nowMs: number): boolean {
  if (Number.isNaN(nowMs)) return !Number.isNaN(beforeMs);
  return !(Math.abs(nowMs - beforeMs) <= 2 + 0.1 * beforeMs);
}

/** A crawler's peers by ascending slot. Positions are valid until an entry is added or removed. */
class PeerRow {
  length = 0;
  peers = new Int32Array(0);
  /** The smaller direction. NaN if neither is known. */
  bestMs = new Float64Array(0);
  /** This crawler's measurements. NaN for none. */
  ownMs = new Float64Array(0);
  /** Time of the last measurement or request, in seconds. 0 for never. */
  ownAt = new Uint32Array(0);
  /** Number of entries with a known RTT. */
  known = 0;
  /** Number of entries measured or requested by this crawler. */
  touched = 0;

  get bytes(): number {
    return this.peers.byteLength + this.bestMs.byteLength + this.ownMs.byteLength + this.ownAt.byteLength;
  }

  bestOf(peer: number): number {
    const at = this.find(peer);
    return at < 0 ? Number.NaN : this.bestMs[at]!;
  }

  /** The peer's position, or −1. */
  find(peer: number): number {
    const at = this.#firstFrom(peer);
    return at < this.length && this.peers[at] === peer ? at : -1;
  }

  /** The peer's position. Adds an entry if needed. */
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

  /** The peer whose last measurement is oldest, except `but`. */
  longestAlone(but: number): number {
    let found = -1;
    for (let at = 0; at < this.length; at++) {
      if (this.ownAt[at] === 0 || this.peers[at] === but) continue;
      if (found < 0 || this.ownAt[at]! < this.ownAt[found]!) found = at;
    }
    return this.peers[found]!;
  }

  /** Removes an entry without a known RTT or a request. */
  dropEmpty(at: number): void {
    if (this.ownAt[at] !== 0 || !Number.isNaN(this.bestMs[at]!)) return;
    this.#shift(at + 1, at);
    this.length -= 1;
  }

  /** The first position whose peer is not below this one. */
  #firstFrom(peer: number): number {
    const { peers } = this;
    let low = 0;
    let high = this.length;
    // Crawlers mostly arrive in the order of their slots.
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
