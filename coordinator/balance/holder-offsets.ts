/**
 * Sums of offsets by holder, nearest crawler and crawler, packed: 18 bytes for each of these, and 10 for each pair of
 * holder and nearest crawler. Lists, because nearly every holder has one or two of either.
 */
export interface HolderPair {
  /** A small whole number that stands for the holder. */
  readonly holder: number;
  /** Index of the nearest crawler that measured. */
  readonly nearest: number;
}

export class HolderOffsets {
  /** By holder its first group, one for each nearest crawler; 0 ends a list. */
  #groups = new Int32Array(64);
  #nearest = new Uint16Array(64);
  #nextGroup = new Int32Array(64);
  #entries = new Int32Array(64);
  #groupCount = 1;
  #crawlers = new Uint16Array(64);
  #sumsMs = new Float64Array(64);
  #counts = new Int32Array(64);
  #nextEntry = new Int32Array(64);
  #entryCount = 1;

  note(at: HolderPair & { readonly crawler: number }, offsetMs: number): void {
    const group = this.#groupOf(at) || this.#addGroup(at);
    let entry = this.#entries[group]!;
    while (entry !== 0 && this.#crawlers[entry] !== at.crawler) entry = this.#nextEntry[entry]!;
    if (entry === 0) entry = this.#addEntry(group, at.crawler);
    this.#sumsMs[entry]! += offsetMs;
    this.#counts[entry]! += 1;
  }

  each(at: HolderPair, visit: (crawler: number, sumMs: number, count: number) => void): void {
    for (let entry = this.#entries[this.#groupOf(at)]!; entry !== 0; entry = this.#nextEntry[entry]!)
      visit(this.#crawlers[entry]!, this.#sumsMs[entry]!, this.#counts[entry]!);
  }

  /** 0 when there is none. */
  #groupOf({ holder, nearest }: HolderPair): number {
    let group = this.#groups[holder] ?? 0;
    while (group !== 0 && this.#nearest[group] !== nearest) group = this.#nextGroup[group]!;
    return group;
  }

  #addGroup({ holder, nearest }: HolderPair): number {
    if (holder >= this.#groups.length) this.#groups = copied(new Int32Array(2 * holder), this.#groups);
    const group = this.#groupCount++;
    if (group >= this.#nearest.length) {
      this.#nearest = copied(new Uint16Array(2 * group), this.#nearest);
      this.#nextGroup = copied(new Int32Array(2 * group), this.#nextGroup);
      this.#entries = copied(new Int32Array(2 * group), this.#entries);
    }
    this.#nearest[group] = nearest;
    this.#nextGroup[group] = this.#groups[holder]!;
    this.#groups[holder] = group;
    return group;
  }

  #addEntry(group: number, crawler: number): number {
    const entry = this.#entryCount++;
    if (entry >= this.#crawlers.length) {
      this.#crawlers = copied(new Uint16Array(2 * entry), this.#crawlers);
      this.#sumsMs = copied(new Float64Array(2 * entry), this.#sumsMs);
      this.#counts = copied(new Int32Array(2 * entry), this.#counts);
      this.#nextEntry = copied(new Int32Array(2 * entry), this.#nextEntry);
    }
    this.#crawlers[entry] = crawler;
    this.#nextEntry[entry] = this.#entries[group]!;
    this.#entries[group] = entry;
    return entry;
  }
}

function copied<Values extends { set(from: Values): void }>(longer: Values, values: Values): Values {
  longer.set(values);
  return longer;
}
