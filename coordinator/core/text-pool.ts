/**
 * Millions of texts, each once, in one arena of UTF-8 bytes instead of as many JavaScript strings: what the
 * tree keeps its names in and the importer its holders. A text takes its bytes and 16 to 32 more, by how full
 * the columns are.
 *
 * Ids are dense: 0, 1, 2 … in the order of first sight. Look-up is by open addressing over a table of ids,
 * never more than half full.
 */

/** What a pool consists of, for a file: `ends[i]` is where text i ends in `text`, and text i + 1 begins. */
export interface TextPoolParts {
  readonly text: Uint8Array;
  readonly ends: Uint32Array;
}

const firstTextBytes = 4096;
const firstTexts = 256;

/** A JavaScript engine's largest buffer is larger; 32-bit ends reach this far. */
const mostTextBytes = 2 ** 32 - 1;

export class TextPool {
  #text: Buffer = Buffer.allocUnsafeSlow(firstTextBytes);
  #ends = new Uint32Array(firstTexts);
  #hashes = new Uint32Array(firstTexts);
  /** Id + 1 at the place of the text's hash or behind; 0 where none. */
  #table = new Int32Array(2 * firstTexts);
  #count = 0;
  #textBytes = 0;

  /** The pool that `parts` came from. Throws RangeError when they do not fit together. */
  static from({ text, ends }: TextPoolParts): TextPool {
    const pool = new TextPool();
    checkEnds(text, ends);
    pool.#text = Buffer.from(text.buffer, text.byteOffset, text.byteLength);
    pool.#ends = ends.slice();
    pool.#count = ends.length;
    pool.#textBytes = text.length;
    // Filled on the first look-up by text: a tree that only reads names never needs it.
    pool.#hashes = new Uint32Array(0);
    return pool;
  }

  /** How many texts; their ids are below. */
  get count(): number {
    return this.#count;
  }

  /** Bytes that the pool takes. */
  get bytes(): number {
    const columns = this.#ends.byteLength + this.#hashes.byteLength + this.#table.byteLength;
    return this.#text.byteLength + columns;
  }

  /** The text's id; the same for the same text. Half surrogate pairs become U+FFFD. */
  intern(text: string): number {
    this.#makeRoom(text.length * 3);
    return this.#internWritten(this.#write(text));
  }

  /** Interns every text of another pool, without making strings; returns the id here of each id there. */
  absorb({ text, ends }: TextPoolParts): Int32Array {
    checkEnds(text, ends);
    let start = 0;
    return Int32Array.from(ends, (end) => {
      this.#makeRoom(end - start);
      this.#text.set(text.subarray(start, end), this.#textBytes);
      const written = this.#textBytes + end - start;
      start = end;
      return this.#internWritten(written);
    });
  }

  #internWritten(end: number): number {
    const hash = hashOf(this.#text, this.#textBytes, end);
    const place = this.#placeOf(hash, end);
    const found = (this.#table[place] as number) - 1;
    return found >= 0 ? found : this.#add(hash, place, end);
  }

  /** The text's id, or −1 when it was never seen. */
  find(text: string): number {
    this.#makeRoom(text.length * 3);
    const end = this.#write(text);
    return (this.#table[this.#placeOf(hashOf(this.#text, this.#textBytes, end), end)] as number) - 1;
  }

  /** The text with this id; the empty text for an id that was not given out. */
  textAt(id: number): string {
    if (id < 0 || id >= this.#count) return "";
    const start = this.#startOf(id);
    const end = this.#ends[id] as number;
    return isAscii(this.#text, start, end)
      ? this.#text.toString("latin1", start, end)
      : this.#text.toString("utf8", start, end);
  }

  /** The texts as they lie in memory, without a copy: valid until the next `intern` or `find`. */
  parts(): TextPoolParts {
    return { text: this.#text.subarray(0, this.#textBytes), ends: this.#ends.subarray(0, this.#count) };
  }

  #add(hash: number, place: number, end: number): number {
    const id = this.#count++;
    this.#ends[id] = end;
    this.#hashes[id] = hash;
    this.#table[place] = id + 1;
    this.#textBytes = end;
    return id;
  }

  /** Behind the last text; returns where the bytes end. Short ASCII texts, nearly all, without a call out. */
  #write(text: string): number {
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

  /** Where in the table the text is that lies behind the last one, or where it belongs. */
  #placeOf(hash: number, end: number): number {
    const mask = this.#table.length - 1;
    for (let place = hash & mask; ; place = (place + 1) & mask) {
      const id = (this.#table[place] as number) - 1;
      if (id < 0 || (this.#hashes[id] === hash && this.#isSame(id, end))) return place;
    }
  }

  #isSame(id: number, end: number): boolean {
    const bytes = this.#text;
    let other = this.#startOf(id);
    if ((this.#ends[id] as number) - other !== end - this.#textBytes) return false;
    for (let at = this.#textBytes; at < end; at += 1, other += 1) {
      if (bytes[at] !== bytes[other]) return false;
    }
    return true;
  }

  #startOf(id: number): number {
    return id === 0 ? 0 : (this.#ends[id - 1] as number);
  }

  #makeRoom(textBytes: number): void {
    const needed = this.#textBytes + textBytes;
    if (needed > mostTextBytes) throw new RangeError("more than 4 GiB of text in one pool");
    if (needed > this.#text.length)
      this.#growText(Math.min(mostTextBytes, Math.max(needed, 2 * this.#text.length)));
    if (this.#count >= this.#ends.length || this.#hashes.length === 0) this.#growTable();
  }

  #growText(capacity: number): void {
    const larger = Buffer.allocUnsafeSlow(capacity);
    this.#text.copy(larger, 0, 0, this.#textBytes);
    this.#text = larger;
  }

  #growTable(): void {
    const capacity = Math.max(firstTexts, 2 ** Math.ceil(Math.log2(this.#count + 1)));
    const ends = new Uint32Array(capacity);
    ends.set(this.#ends.subarray(0, this.#count));
    const hashes = new Uint32Array(capacity);
    const table = new Int32Array(2 * capacity);
    const mask = table.length - 1;
    for (let id = 0; id < this.#count; id += 1) {
      const hash = this.#hashes[id] ?? hashOf(this.#text, this.#startOf(id), this.#ends[id] as number);
      let place = hash & mask;
      while (table[place] !== 0) place = (place + 1) & mask;
      hashes[id] = hash;
      table[place] = id + 1;
    }
    this.#ends = ends;
    this.#hashes = hashes;
    this.#table = table;
  }
}

/** FNV-1a, its bits mixed once more so that the low ones depend on all. */
function hashOf(bytes: Uint8Array, start: number, end: number): number {
  let hash = 0x811c9dc5;
  for (let at = start; at < end; at += 1) hash = Math.imul(hash ^ (bytes[at] as number), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d);
  return (hash ^ (hash >>> 13)) >>> 0;
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
