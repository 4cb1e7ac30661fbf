/**
 * Holds millions of distinct texts in one arena of UTF-8 bytes instead of JavaScript strings. The tree keeps its names here,
 * and the importer its holders. A text takes its bytes plus 16 to 32, depending on how full the columns are.
 *
 * Ids are dense and in the order of first sight: 0, 1, 2 … Lookup uses open addressing over a table of ids, each next to its
 * text's hash: a miss costs one memory access, and growing reads the table sequentially.
 */

interface TextPoolParts {
  readonly text: Uint8Array;
  readonly ends: Uint32Array;
}

const firstTextBytes = 4096;
const firstPlaces = 256;

/** Maximum that 32-bit ends can address. JavaScript buffers may be larger. */
const mostTextBytes = 2 ** 32 - 1;

export class TextPool {
  #text: Buffer = Buffer.allocUnsafeSlow(firstTextBytes);
  #ends = new Uint32Array(firstPlaces);
  /** Two numbers per slot: id + 1 (0 when empty) and the text's hash. */
  #table = new Int32Array(2 * firstPlaces);
  #count = 0;
  #textBytes = 0;

  /** Restores a pool from its parts. Throws RangeError when they are inconsistent. */
  static from({ text, ends }: TextPoolParts): TextPool {
    const pool = new TextPool();
    checkEnds(text, ends);
    pool.#text = Buffer.from(text.buffer, text.byteOffset, text.byteLength);
    pool.#ends = ends.slice();
    pool.#count = ends.length;
    pool.#textBytes = text.length;
    // The table is filled at the first lookup by text, which a tree that only reads names never makes.
    pool.#table = new Int32Array(0);
    return pool;
  }

  get count(): number {
    return this.#count;
  }

  get bytes(): number {
    return this.#text.byteLength + this.#ends.byteLength + this.#table.byteLength;
  }

  intern(text: string): number {
    const end = this.#write(text);
    const hash = hashOf(this.#text, this.#textBytes, end);
    const place = this.#placeOf(hash, end);
    const found = (this.#table[place] as number) - 1;
    return found >= 0 ? found : this.#add(hash, place, end);
  }

  find(text: string): number {
    const end = this.#write(text);
    return (this.#table[this.#placeOf(hashOf(this.#text, this.#textBytes, end), end)] as number) - 1;
  }

  /** Returns the text with this id, or an empty text if the id was not assigned. */
  textAt(id: number): string {
    if (id < 0 || id >= this.#count) return "";
    const start = this.#startOf(id);
    const end = this.#ends[id] as number;
    return isAscii(this.#text, start, end)
      ? this.#text.toString("latin1", start, end)
      : this.#text.toString("utf8", start, end);
  }

  /** Returns the texts without copying them. They are valid until the next `intern` or `find`. */
  parts(): TextPoolParts {
    return { text: this.#text.subarray(0, this.#textBytes), ends: this.#ends.subarray(0, this.#count) };
  }

  #startOf(id: number): number {
    return id === 0 ? 0 : (this.#ends[id - 1] as number);
  }

  /** Registers the text that was just written after the last one. */
  #add(hash: number, place: number, end: number): number {
    const id = this.#count++;
    if (id === this.#ends.length) this.#growEnds();
    this.#textBytes = end;
    this.#ends[id] = end;
    this.#table[place] = id + 1;
    this.#table[place + 1] = hash;
    if (8 * this.#count > 3 * this.#table.length) this.#growTable();
    return id;
  }

  /** Writes after the last text and returns where the bytes end. Short ASCII texts (nearly all) need no native call. */
  #write(text: string): number {
    this.#makeRoom(text.length * 3);
    const bytes = this.#text;
    const start = this.#textBytes;
    if (text.length > 48) return start + bytes.write(text, start);
    for (let at = 0; at < text.length; at += 1) {
      const code = text.charCodeAt(at);
      if (code > 0x7f) return start + bytes.write(text, start);
      bytes[start + at] = code;
    }
    return start + text.length;
  }

  /** Returns the slot that holds the text just written, or that it should take. */
  #placeOf(hash: number, end: number): number {
    if (this.#table.length === 0) this.#growTable();
    const table = this.#table;
    const mask = table.length - 2;
    for (let place = (hash << 1) & mask; ; place = (place + 2) & mask) {
      const id = (table[place] as number) - 1;
      if (id < 0 || (table[place + 1] === hash && this.#isSame(id, end))) return place;
    }
  }

  #isSame(id: number, end: number): boolean {
    const bytes = this.#text;
    const start = this.#textBytes;
    const from = this.#startOf(id);
    if ((this.#ends[id] as number) - from !== end - start) return false;
    for (let at = start, other = from; at < end; at += 1, other += 1) {
      if (bytes[at] !== bytes[other]) return false;
    }
    return true;
  }

  #makeRoom(textBytes: number): void {
    const needed = this.#textBytes + textBytes;
    if (needed > mostTextBytes) throw new RangeError("more than 4 GiB of text in one pool");
    if (needed <= this.#text.length) return;
    const larger = Buffer.allocUnsafeSlow(Math.min(mostTextBytes, Math.max(needed, 2 * this.#text.length)));
    this.#text.copy(larger, 0, 0, this.#textBytes);
    this.#text = larger;
  }

  #growEnds(): void {
    const ends = new Uint32Array(Math.max(firstPlaces, 2 * this.#ends.length));
    ends.set(this.#ends);
    this.#ends = ends;
  }

  #growTable(): void {
    const old = this.#table;
    const places = Math.max(firstPlaces, old.length, 2 ** Math.ceil(Math.log2((4 / 3) * (this.#count + 1))));
    this.#table = new Int32Array(2 * places);
    for (let at = 0; at < old.length; at += 2) {
      if (old[at] !== 0) this.#put(old[at] as number, old[at + 1] as number);
    }
    if (old.length > 0) return;
    for (let id = 0; id < this.#count; id += 1)
      this.#put(id + 1, hashOf(this.#text, this.#startOf(id), this.#ends[id] as number));
  }

  #put(number: number, hash: number): void {
    const table = this.#table;
    const mask = table.length - 2;
    let place = (hash << 1) & mask;
    while (table[place] !== 0) place = (place + 2) & mask;
    table[place] = number;
    table[place + 1] = hash;
  }
}

/** Hashes four bytes at a time, then the rest. The final mixing makes the low bits depend on all bytes. */
function hashOf(bytes: Uint8Array, start: number, end: number): number {
  let hash = 0x811c9dc5 ^ (end - start);
  let at = start;
  for (; at + 3 < end; at += 4) {
    const word =
      (bytes[at] as number) |
      ((bytes[at + 1] as number) << 8) |
      ((bytes[at + 2] as number) << 16) |
      ((bytes[at + 3] as number) << 24);
    hash = Math.imul(hash ^ word, 0x9e3779b1);
    hash ^= hash >>> 15;
  }
  for (; at < end; at += 1) hash = Math.imul(hash ^ (bytes[at] as number), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d);
  return hash ^ (hash >>> 13);
}

function isAscii(bytes: Uint8Array, start: number, end: number): boolean {
  for (let at = start; at < end; at += 1) {
    if ((bytes[at] as number) > 0x7f) return false;
  }
  return true;
}

function checkEnds(text: Uint8Array, ends: Uint32Array): void {
  let before = 0;
  for (const end of ends) {
    if (end < before) throw new RangeError("the ends of the texts do not rise");
    before = end;
  }
  if (before !== text.length) throw new RangeError(`the texts end at ${before}, not at ${text.length}`);
}

/** A typed array that grows as values arrive, for input of unknown length. */

type ColumnArray =
  | Int32Array<ArrayBuffer>
  | Uint32Array<ArrayBuffer>
  | Float64Array<ArrayBuffer>
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

  set(index: number, value: number): void {
    if (index === this.#length) this.push(value);
    else this.#values[index] = value;
  }

  at(index: number): number {
    return this.#values[index] as number;
  }

  /** Returns the values so far without copying them. They are valid until the next push. */
  values(): Values {
    return this.#values.subarray(0, this.#length) as Values;
  }
}
