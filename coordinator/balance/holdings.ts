/** Who holds how much of each subnet's load. Nearly all are held whole; only those in parts cost more than four bytes. */
export class Holdings {
  /** The crawler that holds the whole subnet; `inParts` or `nowhere` otherwise. */
  #whole = new Int32Array(16).fill(nowhere);
  readonly #loadOf: (subnet: number) => number;
  readonly #parts = new Map<number, Map<number, number>>();
  /** Less than this is nothing: what rounding leaves of a sum. */
  readonly dust: number;

  constructor(loadOf: (subnet: number) => number, dust: number) {
    this.#loadOf = loadOf;
    this.dust = dust;
  }

  place(subnet: number, crawler: number): void {
    if (subnet >= this.#whole.length) {
      const longer = new Int32Array(Math.max(subnet + 1, 2 * this.#whole.length)).fill(nowhere);
      longer.set(this.#whole);
      this.#whole = longer;
    }
    this.#parts.delete(subnet);
    this.#whole[subnet] = crawler;
  }

  /** Takes the subnet out; returns what was held by whom. */
  remove(subnet: number): ReadonlyMap<number, number> {
    const held = this.partsOf(subnet);
    this.place(subnet, nowhere);
    return held;
  }

  amountAt(subnet: number, crawler: number): number {
    const whole = this.#whole[subnet]!;
    if (whole === crawler) return this.#loadOf(subnet);
    return whole === inParts ? (this.#parts.get(subnet)?.get(crawler) ?? 0) : 0;
  }

  /** The one that holds it whole, or -1. */
  wholeAt(subnet: number): number {
    return Math.max(-1, this.#whole[subnet] ?? nowhere);
  }

  partsOf(subnet: number): ReadonlyMap<number, number> {
    const whole = this.#whole[subnet] ?? nowhere;
    if (whole >= 0) return new Map([[whole, this.#loadOf(subnet)]]);
    return this.#parts.get(subnet) ?? new Map();
  }

  /** Subnets that several crawlers hold a part of. */
  get split(): readonly number[] {
    return [...this.#parts.keys()];
  }

  /** Hands an amount, at most what `from` holds, to another. */
  shift(subnet: number, from: number, to: number, amount: number): void {
    const parts = new Map(this.partsOf(subnet));
    parts.set(from, (parts.get(from) ?? 0) - amount);
    parts.set(to, (parts.get(to) ?? 0) + amount);
    if ((parts.get(from) ?? 0) <= this.dust) parts.delete(from);
    const [only] = parts.keys();
    if (parts.size === 1 && only !== undefined) this.place(subnet, only);
    else {
      this.#whole[subnet] = inParts;
      this.#parts.set(subnet, parts);
    }
  }
}

const nowhere = -2;
const inParts = -1;
