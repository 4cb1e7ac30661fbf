/**
 * What a short value means, remembered from one record to the next: in a registry file the same few words (the
 * registry, the type, the status) fill whole columns, and comparing their bytes spares making a text of them.
 */
import { decodeText } from "./text-decoding.ts";

const maxRemembered = 64;

export class RememberedBytes<Meaning> {
  readonly #meaningOf: (text: string) => Meaning;
  readonly #bytes = Buffer.alloc(maxRemembered);
  #length = -1;
  #meaning: Meaning | undefined;

  /** `meaningOf` has the same answer for the same text, always. */
  constructor(meaningOf: (text: string) => Meaning) {
    this.#meaningOf = meaningOf;
  }

  /** The meaning of the bytes between two positions. */
  of(bytes: Buffer, start: number, end: number): Meaning {
    if (this.#isSame(bytes, start, end)) return this.#meaning as Meaning;
    const meaning = this.#meaningOf(decodeText(bytes, start, end));
    this.#length = end - start <= maxRemembered ? bytes.copy(this.#bytes, 0, start, end) : -1;
    this.#meaning = meaning;
    return meaning;
  }

  #isSame(bytes: Buffer, start: number, end: number): boolean {
    if (end - start !== this.#length) return false;
    const known = this.#bytes;
    for (let at = 0; at < this.#length; at++) if (known[at] !== bytes[start + at]) return false;
    return true;
  }
}
