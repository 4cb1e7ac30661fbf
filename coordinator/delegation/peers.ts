/**
 * The crawlers' round-trip times to each other, as they measured them: one row of numbers per crawler, so that
 * a fleet of 1,000 takes 20 MB and a look-up no text keys. Both directions are one path: the smaller of the
 * two measurements counts, since congestion only adds. What was measured earlier is replaced, direction by
 * direction.
 */
import type { CrawlerId } from "#core/ids";

export class PeerMatrix {
  readonly #slots = new Map<CrawlerId, number>();
  readonly #ids: CrawlerId[] = [];
  #capacity = 0;
  /** By direction: what the row's crawler measured (NaN: nothing). */
  #measured: Float64Array[] = [];
  /** The smaller of both directions, symmetric. */
  #best: Float64Array[] = [];
  /** By direction: when it was last measured or asked for, in seconds; 0: never. */
  #touchedAt: Uint32Array[] = [];
  readonly #known: number[] = [];
  #revision = 0;

  /** Counts up whenever an RTT becomes known or changes by more than jitter: what was made from the rows is old then. */
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

  /** Per slot the RTTs in ms to all slots (NaN: unknown); live, and longer than the fleet. New rows after a growth. */
  get rows(): readonly Float64Array[] {
    return this.#best;
  }

  /** The crawler's slot, a new one where it has none. */
  slotOf(crawlerId: CrawlerId): number {
    const known = this.#slots.get(crawlerId);
    if (known !== undefined) return known;
    const slot = this.#ids.length;
    if (slot === this.#capacity) this.#grow();
    this.#slots.set(crawlerId, slot);
    this.#ids.push(crawlerId);
    this.#known.push(0);
    return slot;
  }

  /** A measurement in ms; what is none (negative, NaN, of a crawler to itself) is left out. */
  learn(from: number, to: number, rttMs: number, atMs: number): void {
    if (!(rttMs >= 0) || !Number.isFinite(rttMs) || from === to) return;
    if (Number.isNaN(this.#best[from]![to]!)) {
      this.#known[from]! += 1;
      this.#known[to]! += 1;
    }
    this.#measured[from]![to] = rttMs;
    const back = this.#measured[to]![from]!;
    const best = Number.isNaN(back) ? rttMs : Math.min(back, rttMs);
    if (isOther(this.#best[from]![to]!, best)) this.#revision += 1;
    this.#best[from]![to] = best;
    this.#best[to]![from] = best;
    this.touch(from, to, atMs);
  }

  /** It was measured, or asked for, at this time. */
  touch(from: number, to: number, atMs: number): void {
    this.#touchedAt[from]![to] = Math.max(1, Math.floor(atMs / 1000));
  }

  /** The RTT between two slots in ms; NaN where neither has measured the other. */
  rttMs(a: number, b: number): number {
    return this.#best[a]?.[b] ?? Number.NaN;
  }

  hasMeasured(from: number, to: number): boolean {
    const rttMs = this.#measured[from]?.[to];
    return rttMs !== undefined && !Number.isNaN(rttMs);
  }

  /** To how many others a slot's RTT is known. */
  knownOf(slot: number): number {
    return this.#known[slot] ?? 0;
  }

  /** When one direction was last measured or asked for, in seconds; 0: never. */
  touchedAt(from: number, to: number): number {
    return this.#touchedAt[from]![to]!;
  }

  #grow(): void {
    this.#capacity = Math.max(16, this.#capacity * 2);
    const wider = <Row extends Float64Array | Uint32Array>(rows: Row[], make: () => Row) =>
      Array.from({ length: this.#capacity }, (_, slot) => {
        const row = make();
        if (rows[slot]) row.set(rows[slot]);
        return row;
      });
    this.#measured = wider(this.#measured, () => new Float64Array(this.#capacity).fill(Number.NaN));
    this.#best = wider(this.#best, () => new Float64Array(this.#capacity).fill(Number.NaN));
    this.#touchedAt = wider(this.#touchedAt, () => new Uint32Array(this.#capacity));
  }
}

function isOther(beforeMs: number, nowMs: number): boolean {
  return !(Math.abs(nowMs - beforeMs) <= 2 + 0.1 * beforeMs);
}
