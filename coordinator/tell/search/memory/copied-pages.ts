/** Reads pages from a binary COPY in place (pageColumnsSql says which columns, in which order). */
import type { IndexedPage } from "./memory-index.ts";

const signatureBytes = 11;

/** Postgres sends times as microseconds since 2000. */
const postgresEpochS = 946_684_800;

/** Takes the pieces of the stream, however they are cut, and yields the complete pages. */
export class CopiedPages {
  #rest: Buffer = Buffer.alloc(0);
  #begun = false;

  /** Returns how many pages the piece completed. */
  take(piece: Buffer, visit: (page: IndexedPage) => void): number {
    const bytes = this.#rest.length === 0 ? piece : Buffer.concat([this.#rest, piece]);
    let at = this.#begun ? 0 : headerEnd(bytes);
    if (at === null) {
      this.#rest = bytes;
      return 0;
    }
    this.#begun = true;
    let pages = 0;
    for (;;) {
      const end = rowEnd(bytes, at);
      if (end === null) break;
      visit(pageIn(bytes, at));
      pages += 1;
      at = end;
    }
    this.#rest = bytes.subarray(at);
    return pages;
  }
}

function headerEnd(bytes: Buffer): number | null {
  if (bytes.length < signatureBytes + 8) return null;
  const end = signatureBytes + 8 + bytes.readUInt32BE(signatureBytes + 4);
  return bytes.length < end ? null : end;
}

/** Returns null if the page is incomplete, or the last one has been read. */
function rowEnd(bytes: Buffer, from: number): number | null {
  if (bytes.length < from + 2) return null;
  const columns = bytes.readInt16BE(from);
  if (columns < 0) return null;
  let at = from + 2;
  for (let column = 0; column < columns; column++) {
    if (bytes.length < at + 4) return null;
    at += 4 + Math.max(0, bytes.readInt32BE(at));
  }
  return bytes.length < at ? null : at;
}

function pageIn(bytes: Buffer, from: number): IndexedPage {
  let at = from + 2;
  const next = (): Buffer | null => {
    const length = bytes.readInt32BE(at);
    at += 4;
    if (length < 0) return null;
    at += length;
    return bytes.subarray(at - length, at);
  };
  return {
    hostHash: next()!.readBigInt64BE(),
    urlHash: next()!.readBigInt64BE(),
    host: next()!.toString(),
    language: next()?.toString() ?? null,
    configuration: next()!.toString(),
    crawlerId: next()!.readInt32BE(),
    publishedS: secondsOf(next()),
    fetchedS: secondsOf(next())!,
    linkingHosts: next()!.readInt16BE(),
    isLaterCopy: next()![0] === 1,
    textGroup: next()?.readBigInt64BE() ?? null,
    preferenceSet: next()?.readInt32BE() ?? null,
    contentType: next()!.toString(),
    lexemes: next()!,
    address: next()!,
  };
}

function secondsOf(time: Buffer | null): number | null {
  return time === null ? null : postgresEpochS + Number(time.readBigInt64BE()) / 1e6;
}
