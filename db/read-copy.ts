/** Rows in bulk out of the database: binary COPY, no text made or parsed for numbers and addresses. */
import type { PoolClient } from "pg";
import { to as copyTo } from "pg-copy-streams";
import { DatabaseError } from "#core/errors";
import { copySignature, inetFamily } from "./copy.ts";

const headerBytes = copySignature.length + 8;
/** A row of ours has at most a few KB; more means that the stream is out of step. */
const maxFieldBytes = 2 ** 26;

/** One row, valid until the call that hands it over returns. Columns are counted from 0. */
export interface CopiedRow {
  isNull(column: number): boolean;
  int32(column: number): number;
  /** One half of a bigint, or of several that stand in a bytea, as a signed number of 32 bits; higher ones first. */
  half(column: number, index: number): number;
  byteLength(column: number): number;
  float32(column: number): number;
  float64(column: number): number;
  boolean(column: number): boolean;
  text(column: number): string;
  /** 4 or 6. */
  family(column: number): 4 | 6;
  /** A 32-bit word of an address, the most significant first. */
  word(column: number, index: number): number;
}

/**
 * Runs `copy (select …) to stdout` and calls back with every row; returns how many. Throws DatabaseError
 * for a stream that is not what COPY sends.
 */
export async function readCopy(
  client: PoolClient,
  select: string,
  onRow: (row: CopiedRow) => void,
): Promise<number> {
  const stream = client.query(copyTo(`copy (${select}) to stdout (format binary)`));
  const reader = new RowReader(onRow);
  let failure: unknown = null;
  for await (const chunk of stream) {
    // After a failure the rest is read and dropped: the connection is of use again only when COPY is over.
    if (failure !== null) continue;
    try {
      reader.push(chunk as Buffer);
    } catch (error) {
      failure = error;
    }
  }
  if (failure !== null) throw failure;
  return reader.end();
}

class RowReader implements CopiedRow {
  readonly #onRow: (row: CopiedRow) => void;
  #bytes: Buffer = Buffer.alloc(0);
  readonly #starts: number[] = [];
  /** −1 for null. */
  readonly #lengths: number[] = [];
  #rows = 0;
  #sawHeader = false;
  #sawEnd = false;

  constructor(onRow: (row: CopiedRow) => void) {
    this.#onRow = onRow;
  }

  push(chunk: Buffer): void {
    this.#bytes = this.#bytes.length === 0 ? chunk : Buffer.concat([this.#bytes, chunk]);
    let at = this.#sawHeader ? 0 : this.#header();
    for (let next = this.#row(at); next > at; next = this.#row(at)) at = next;
    this.#bytes = this.#bytes.subarray(at);
  }

  end(): number {
    if (!this.#sawEnd) throw new DatabaseError("the server's COPY ended early");
    return this.#rows;
  }

  isNull(column: number): boolean {
    return (this.#lengths[column] as number) < 0;
  }

  int32(column: number): number {
    return this.#bytes.readInt32BE(this.#starts[column] as number);
  }

  half(column: number, index: number): number {
    return this.#bytes.readInt32BE((this.#starts[column] as number) + 4 * index);
  }

  byteLength(column: number): number {
    return Math.max(0, this.#lengths[column] as number);
  }

  float32(column: number): number {
    return this.#bytes.readFloatBE(this.#starts[column] as number);
  }

  float64(column: number): number {
    return this.#bytes.readDoubleBE(this.#starts[column] as number);
  }

  boolean(column: number): boolean {
    return this.#bytes[this.#starts[column] as number] === 1;
  }

  text(column: number): string {
    const start = this.#starts[column] as number;
    return this.#bytes.toString("utf8", start, start + Math.max(0, this.#lengths[column] as number));
  }

  family(column: number): 4 | 6 {
    return this.#bytes[this.#starts[column] as number] === inetFamily[4] ? 4 : 6;
  }

  word(column: number, index: number): number {
    return this.#bytes.readUInt32BE((this.#starts[column] as number) + 4 + 4 * index);
  }

  #header(): number {
    if (this.#bytes.length < headerBytes) return 0;
    if (!this.#bytes.subarray(0, copySignature.length).equals(copySignature)) {
      throw new DatabaseError("the server's COPY is not in the binary format");
    }
    this.#sawHeader = true;
    return headerBytes + this.#bytes.readUInt32BE(copySignature.length + 4);
  }

  /** Where the next row starts; the same place when this one has not arrived whole, or at the end. */
  #row(start: number): number {
    const bytes = this.#bytes;
    if (!this.#sawHeader || this.#sawEnd || start + 2 > bytes.length) return start;
    const columns = bytes.readInt16BE(start);
    if (columns < 0) {
      this.#sawEnd = true;
      return start + 2;
    }
    let at = start + 2;
    for (let column = 0; column < columns; column += 1) {
      if (at + 4 > bytes.length) return start;
      const length = bytes.readInt32BE(at);
      if (length > maxFieldBytes) throw new DatabaseError(`the server's COPY has a field of ${length} bytes`);
      at += 4;
      this.#starts[column] = at;
      this.#lengths[column] = length;
      at += Math.max(0, length);
    }
    if (at > bytes.length) return start;
    this.#rows += 1;
    this.#onRow(this);
    return at;
  }
}
