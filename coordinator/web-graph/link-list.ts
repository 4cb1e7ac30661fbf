/** Links as they arrive, source and target by number, in arrays that grow: 8 bytes a link. */

const firstCapacity = 4096;

export class LinkList {
  #from = new Uint32Array(firstCapacity);
  #to = new Uint32Array(firstCapacity);
  #count = 0;

  add(from: number, to: number): void {
    if (this.#count === this.#from.length) this.#grow();
    this.#from[this.#count] = from;
    this.#to[this.#count] = to;
    this.#count += 1;
  }

  get count(): number {
    return this.#count;
  }

  get from(): Uint32Array {
    return this.#from.subarray(0, this.#count);
  }

  get to(): Uint32Array {
    return this.#to.subarray(0, this.#count);
  }

  /** By half: a graph that fits should not fail for want of twice its room. */
  #grow(): void {
    const capacity = Math.ceil(1.5 * this.#from.length);
    const [from, to] = [new Uint32Array(capacity), new Uint32Array(capacity)];
    from.set(this.#from);
    to.set(this.#to);
    this.#from = from;
    this.#to = to;
  }
}
