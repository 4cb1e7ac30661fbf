/**
 * Repairs four faults of HTTP/1.1 answers that browsers tolerate and undici's parser refuses, in the bytes before the parser
 * sees them: a folded header (obs-fold, RFC 9112 section 5.2), header lines that end with a single line feed (section 2.2),
 * blanks after a chunk size (section 7.1.1), and an unrequested 100 (RFC 9110 section 15.2). Everything else passes unchanged,
 * and the parser judges it. The transport must not reuse a repaired connection, because an intermediary may read what follows
 * such an answer differently.
 *
 *   start → head → size → data → size … → rest      start: also after an answer of 1xx
 *     └→ skipped → start (a 100)                    rest: a body without chunks, the end of one, anything unknown
 */

/** The parser must refuse a longer line with a chunk size. */
const longestSizeLine = 1024;

const [tab, lineFeed, carriageReturn, space] = [0x09, 0x0a, 0x0d, 0x20];

const unaskedStatus = "HTTP/1.1 100";

export class FramingMender {
  isOdd = false;
  #state: "start" | "head" | "skipped" | "size" | "data" | "rest" = "start";
  #held: Buffer = Buffer.alloc(0);
  /** State of the current head: the field so far, whether the status is 1xx, and whether the body is chunked. */
  #field = "";
  #isInformational = false;
  #isChunked = false;
  /** Remaining bytes of a chunk, including its line break. */
  #dataBytes = 0;

  /** Must be called for each new request. Bytes that are still held then belong to no answer, and the parser refuses them. */
  restart(): void {
    this.#state = this.#held.length === 0 ? "start" : "rest";
  }

  push(piece: Buffer): Buffer {
    if (this.#state === "rest" && this.#held.length === 0) return piece;
    const bytes = this.#held.length === 0 ? piece : Buffer.concat([this.#held, piece]);
    const given = new Given(bytes);
    let at = 0;
    while (at < bytes.length && this.#state !== "rest") {
      const next = this.#step(bytes, at, given);
      if (next === null) break;
      at = next;
    }
    const end = this.#state === "rest" ? bytes.length : at;
    this.#held = bytes.subarray(end);
    return given.upTo(end);
  }

  /** Returns the next position, or null when more input is needed. */
  #step(bytes: Buffer, at: number, given: Given): number | null {
    switch (this.#state) {
      case "start":
        return this.#begin(bytes, at);
      case "head":
        return this.#takeLine(bytes, at, given);
      case "skipped":
        return this.#skipLine(bytes, at, given);
      case "size":
        return this.#takeSize(bytes, at, given);
      default:
        return this.#takeData(bytes, at);
    }
  }

  #begin(bytes: Buffer, at: number): number | null {
    if (bytes[at] === carriageReturn || bytes[at] === lineFeed) return at + 1;
    const start = bytes.toString("latin1", at, at + unaskedStatus.length + 1);
    // Only the next character distinguishes 100 from 1000.
    if (start.length <= unaskedStatus.length && unaskedStatus.startsWith(start)) return null;
    this.#state = /^HTTP\/1\.1 100[^\d]/.test(start) ? "skipped" : "head";
    this.#isInformational = /^HTTP\/1\.1 1/.test(start);
    this.#isChunked = false;
    this.#field = "";
    return at;
  }

  /** Reads to the end of a line, or past it if the next line continues the field. */
  #takeLine(bytes: Buffer, at: number, given: Given): number | null {
    const feed = bytes.indexOf(lineFeed, at);
    const stop = feed < 0 ? bytes.length : feed;
    const end = stop > at && bytes[stop - 1] === carriageReturn ? stop - 1 : stop;
    if (feed >= 0 && end === at && this.#field === "") {
      this.#endLine(end, feed, given);
      return this.#endHead(feed + 1);
    }
    this.#field += bytes.toString("latin1", at, end);
    const next = feed < 0 ? undefined : bytes[feed + 1];
    // Whether the line break ends the field depends on the next character. Until that arrives, the parser may judge the line.
    if (next === undefined) return end === at ? null : end;
    if (next === space || next === tab) {
      this.isOdd = true;
      given.replace(end, feed + 2, " ");
      return feed + 2;
    }
    this.#endLine(end, feed, given);
    this.#isChunked ||= /^transfer-encoding:[ \t]*chunked[ \t]*$/i.test(this.#field);
    this.#field = "";
    return feed + 1;
  }

  /** A single line feed may end a line (section 2.2). */
  #endLine(end: number, feed: number, given: Given): void {
    if (end < feed) return;
    this.isOdd = true;
    given.replace(end, feed + 1, "\r\n");
  }

  #endHead(end: number): number {
    this.#state = this.#isInformational ? "start" : this.#isChunked ? "size" : "rest";
    return end;
  }

  #skipLine(bytes: Buffer, at: number, given: Given): number {
    const feed = bytes.indexOf(lineFeed, at);
    const end = feed < 0 ? bytes.length : feed + 1;
    this.isOdd = true;
    given.replace(at, end, "");
    this.#field ||= bytes.toString("latin1", at, end).trim().slice(0, 1);
    if (feed < 0) return end;
    if (this.#field === "") this.#state = "start";
    this.#field = "";
    return end;
  }

  #takeSize(bytes: Buffer, at: number, given: Given): number | null {
    const feed = bytes.indexOf(lineFeed, at);
    const line = bytes.toString("latin1", at, feed < 0 ? bytes.length : feed);
    const [, size, blanks, extension] = /^([\da-f]{1,12})([ \t]*)(;[^\r]*)?\r?$/i.exec(line) ?? [];
    const isSound = size !== undefined && blanks !== undefined && line.length < longestSizeLine;
    if (isSound && feed < 0) return null;
    if (!isSound) {
      this.#state = "rest";
      return bytes.length;
    }
    if (blanks !== "") {
      this.isOdd = true;
      given.replace(at + size.length, at + size.length + blanks.length + (extension?.length ?? 0), "");
    }
    this.#dataBytes = Number.parseInt(size, 16) + 2;
    this.#state = this.#dataBytes === 2 ? "rest" : "data";
    return feed + 1;
  }

  #takeData(bytes: Buffer, at: number): number {
    const taken = Math.min(this.#dataBytes, bytes.length - at);
    this.#dataBytes -= taken;
    if (this.#dataBytes === 0) this.#state = "size";
    return at + taken;
  }
}

class Given {
  readonly #bytes: Buffer;
  readonly #parts: Buffer[] = [];
  #from = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  replace(start: number, end: number, text: string): void {
    this.#parts.push(this.#bytes.subarray(this.#from, start), Buffer.from(text));
    this.#from = end;
  }

  upTo(end: number): Buffer {
    const last = this.#bytes.subarray(this.#from, Math.max(this.#from, end));
    return this.#parts.length === 0 ? last : Buffer.concat([...this.#parts, last]);
  }
}
