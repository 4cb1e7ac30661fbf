/** Numbers for names and long keys, from 1; 0 means none. */
import { grown } from "./term-table.ts";

export class Names {
  readonly #numbers = new Map<string, number>();
  readonly #names: string[] = [""];

  get count(): number {
    return this.#names.length;
  }

  add(name: string | null): number {
    if (name === null || name === "") return 0;
    const known = this.#numbers.get(name);
    if (known !== undefined) return known;
    this.#names.push(name);
    this.#numbers.set(name, this.#names.length - 1);
    return this.#names.length - 1;
  }

  /** 0: unknown name. */
  find(name: string): number {
    return this.#numbers.get(name) ?? 0;
  }

  of(number: number): string {
    return this.#names[number] ?? "";
  }
}

/** Hosts, each under the name after its first dot, with the country of its address. */
export class Hosts {
  readonly #names = new Names();
  #parents = new Uint32Array(1 << 10);
  #countries = new Uint16Array(1 << 10);

  get count(): number {
    return this.#names.count;
  }

  /** About 150 bytes per name. */
  get byteLength(): number {
    return this.#parents.byteLength + this.#countries.byteLength + 150 * this.count;
  }

  add(name: string): number {
    const known = this.#names.find(name);
    if (known !== 0) return known;
    const dot = name.indexOf(".");
    const parent = dot === -1 ? 0 : this.add(name.slice(dot + 1));
    const number = this.#names.add(name);
    if (number >= this.#parents.length) {
      this.#parents = grown(this.#parents, 2 * number);
      this.#countries = grown(this.#countries, 2 * number);
    }
    this.#parents[number] = parent;
    return number;
  }

  find(name: string): number {
    return this.#names.find(name);
  }

  nameOf(host: number): string {
    return this.#names.of(host);
  }

  isBelow(host: number, site: number): boolean {
    for (let at = host; at !== 0; at = this.#parents[at]!) if (at === site) return true;
    return false;
  }

  countryOf(host: number): number {
    return this.#countries[host] ?? 0;
  }

  setCountry(host: number, country: number): void {
    this.#countries[host] = country;
  }
}

/** Numbers of groups, and how many pages each has had. */
export class Groups {
  #keys = new BigInt64Array(1 << 10);
  #slots = new Uint32Array(1 << 11);
  #pages = new Uint32Array(1 << 10);
  #count = 1;

  get byteLength(): number {
    return this.#keys.byteLength + this.#slots.byteLength + this.#pages.byteLength;
  }

  /** Counts one page more. */
  add(key: bigint | null): number {
    if (key === null) return 0;
    const mask = this.#slots.length - 1;
    let slot = Number(BigInt.asUintN(32, key)) & mask;
    for (let known = this.#slots[slot]!; known !== 0; known = this.#slots[slot]!) {
      if (this.#keys[known] === key) {
        this.#pages[known]! += 1;
        return known;
      }
      slot = (slot + 1) & mask;
    }
    const number = this.#count++;
    if (number >= this.#pages.length) this.#grow();
    this.#keys[number] = key;
    this.#pages[number] = 1;
    this.#enter(number);
    return number;
  }

  keyOf(group: number): bigint {
    return this.#keys[group]!;
  }

  /** Whether it has or had other pages. */
  isShared(group: number): boolean {
    return group !== 0 && this.#pages[group]! > 1;
  }

  #grow(): void {
    const length = 2 * this.#pages.length;
    const keys = new BigInt64Array(length);
    keys.set(this.#keys);
    this.#keys = keys;
    this.#pages = grown(this.#pages, length);
    this.#slots = new Uint32Array(2 * length);
    for (let number = 1; number < this.#count - 1; number++) this.#enter(number);
  }

  #enter(number: number): void {
    const mask = this.#slots.length - 1;
    let slot = Number(BigInt.asUintN(32, this.#keys[number]!)) & mask;
    while (this.#slots[slot] !== 0) slot = (slot + 1) & mask;
    this.#slots[slot] = number;
  }
}
