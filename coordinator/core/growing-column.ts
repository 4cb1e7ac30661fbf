/** A typed array that grows while values arrive: what input of unknown length is collected in. */

type ColumnArray =
  | Int32Array<ArrayBuffer>
  | Uint32Array<ArrayBuffer>
  | Uint16Array<ArrayBuffer>
  | Uint8Array<ArrayBuffer>;

export class GrowingColumn<Values extends ColumnArray> {
  readonly #make: (length: number) => Values;
  #values: Values;
  #length = 0;

  constructor(make: (length: number) => Values) {
    this.#make = make;
    this.#values = make(64);
  }

  get length(): number {
    return this.#length;
  }

  push(value: number): void {
    if (this.#length === this.#values.length) {
      const larger = this.#make(2 * this.#length);
      larger.set(this.#values);
      this.#values = larger;
    }
    this.#values[this.#length++] = value;
  }

  /** The value at an index below `length`. */
  at(index: number): number {
    return this.#values[index] as number;
  }

  /** The values so far, without a copy: valid until the next push. */
  values(): Values {
    return this.#values.subarray(0, this.#length) as Values;
  }
}
