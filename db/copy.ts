/** Writes rows in bulk by binary COPY, without converting numbers and addresses to text. */
import { once } from "node:events";
import type { Writable } from "node:stream";
import { finished } from "node:stream/promises";
import type { PoolClient } from "pg";
import { from as copyFrom, to as copyTo } from "pg-copy-streams";
import { DatabaseError } from "#core/errors";

const flushBytes = 262_144;
/** The buffer grows with the data, since most copies within a transaction of results are short. */
const leastBytes = 32_768;
const postgresEpochMs = Date.UTC(2000, 0, 1);

/**
 * Copies what `write` produces into the table's columns. Throws the server's refusal or what `write` threw. Nothing is
 * written in either case.
 */
export async function writeCopy(
  client: PoolClient,
  into: { readonly table: string; readonly columns: readonly string[] },
  write: (rows: CopyWriter) => Promise<void>,
): Promise<void> {
  const columns = into.columns.join(", ");
  const stream = client.query(copyFrom(`copy ${into.table} (${columns}) from stdin (format binary)`));
  const done = finished(stream);
  done.catch(() => {});
  try {
    const rows = new CopyWriter(stream, into.columns.length);
    await write(rows);
    await rows.end();
  } catch (error) {
    stream.destroy(error as Error);
    await done.catch(() => {});
    throw error;
  }
  await done;
}

/** For each row, call `row` and then one method per column in order. Call `flush` when `isFull`. */
export class CopyWriter {
  readonly #stream: Writable;
  readonly #columns: number;
  #hasEnded = false;
  #bytes: Buffer = Buffer.allocUnsafe(leastBytes);
  #length = 0;

  constructor(stream: Writable, columns: number) {
    this.#stream = stream;
    this.#columns = columns;
    this.#length = copySignature.copy(this.#bytes);
    this.#bytes.fill(0, this.#length, this.#length + 8);
    this.#length += 8;
  }

  row(): void {
    this.#putInt16(this.#columns);
  }

  null(): void {
    this.#putInt32(-1);
  }

  int16(value: number): void {
    this.#putInt32(2);
    this.#putInt16(value);
  }

  int32(value: number): void {
    this.#putInt32(4);
    this.#putInt32(value);
  }

  int64(high: number, low: number): void {
    this.#putInt32(8);
    this.#putInt32(high | 0);
    this.#putInt32(low | 0);
  }

  bigint(value: string | bigint): void {
    this.#putInt32(8);
    this.#makeRoom(8);
    this.#length = this.#bytes.writeBigInt64BE(BigInt(value), this.#length);
  }

  float32(value: number): void {
    this.#putInt32(4);
    this.#makeRoom(4);
    this.#length = this.#bytes.writeFloatBE(value, this.#length);
  }

  boolean(value: boolean): void {
    this.#putInt32(1);
    this.#makeRoom(1);
    this.#bytes[this.#length++] = value ? 1 : 0;
  }

  /** Writes a timestamptz from milliseconds. Postgres counts microseconds from the year 2000. */
  timestamp(at: Date): void {
    const microseconds = BigInt(at.getTime() - postgresEpochMs) * 1000n;
    this.int64(Number(microseconds >> 32n), Number(microseconds & 0xffff_ffffn));
  }

  text(value: string): void {
    this.#makeRoom(4 + 3 * value.length);
    const written = this.#bytes.write(value, this.#length + 4);
    this.#bytes.writeInt32BE(written, this.#length);
    this.#length += 4 + written;
  }

  /** Writes the address of `count` words (1 or 4) in `words` from `start` on. */
  inet(words: Uint32Array, start: number, count: number): void {
    this.#makeRoom(8 + 4 * count);
    const bytes = this.#bytes;
    bytes.writeInt32BE(4 + 4 * count, this.#length);
    bytes[this.#length + 4] = count === 1 ? inetFamily[4] : inetFamily[6];
    bytes[this.#length + 5] = 32 * count;
    bytes[this.#length + 6] = 0;
    bytes[this.#length + 7] = 4 * count;
    this.#length += 8;
    for (let word = 0; word < count; word += 1) this.#putWord(words[start + word] as number);
  }

  get isFull(): boolean {
    return this.#length >= flushBytes;
  }

  async flush(): Promise<void> {
    if (this.#length === 0) return;
    const hasRoom = this.#stream.write(this.#bytes.subarray(0, this.#length));
    this.#bytes = Buffer.allocUnsafe(this.#hasEnded ? 0 : 2 * flushBytes);
    this.#length = 0;
    if (!hasRoom) await once(this.#stream, "drain");
  }

  async end(): Promise<void> {
    this.#putInt16(-1);
    this.#hasEnded = true;
    await this.flush();
    this.#stream.end();
  }

  #putInt16(value: number): void {
    this.#makeRoom(2);
    this.#length = this.#bytes.writeInt16BE(value, this.#length);
  }

  #putInt32(value: number): void {
    this.#makeRoom(4);
    this.#length = this.#bytes.writeInt32BE(value, this.#length);
  }

  #putWord(value: number): void {
    this.#length = this.#bytes.writeUInt32BE(value, this.#length);
  }

  #makeRoom(bytes: number): void {
    if (this.#length + bytes <= this.#bytes.length) return;
    const larger = Buffer.allocUnsafe(2 * (this.#length + bytes));
    this.#bytes.copy(larger, 0, 0, this.#length);
    this.#bytes = larger;
  }
}

/**
 * PostgreSQL's binary COPY format (documentation of COPY, "Binary Format"), for reading and writing. Columns are int2,
 * int4, int8, float4, float8, bytea (reading only), boolean, text, timestamptz (writing only) and inet. An inet is one
 * 32-bit word (IPv4) or four (IPv6), always a whole address without a prefix length.
 */

const copySignature = Buffer.from("PGCOPY\n\xff\r\n\0", "latin1");

const inetFamily = { 4: 2, 6: 3 } as const;

// Reads rows in bulk by binary COPY, without converting numbers and addresses from text.

const headerBytes = copySignature.length + 8;

/** Rows have at most a few KB, so a longer field means that the reader lost its place in the stream. */
const maxFieldBytes = 2 ** 26;

/** A row, valid only during the call that receives it. Columns are counted from 0. */
export interface CopiedRow {
  isNull(column: number): boolean;
  int32(column: number): number;
  /** Half of a bigint, or of one of several in a bytea, as a signed 32-bit number. The higher half comes first. */
  half(column: number, index: number): number;
  byteLength(column: number): number;
  float32(column: number): number;
  float64(column: number): number;
  boolean(column: number): boolean;
  text(column: number): string;
  family(column: number): 4 | 6;
  /** A 32-bit word of an address, most significant first. */
  word(column: number, index: number): number;
}

/**
 * Runs `copy (select …) to stdout`, calls back for every row and returns their number. Throws DatabaseError for an
 * invalid stream.
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
    // After a failure the rest is read and dropped, since the connection can be used again only after COPY ends.
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
  /** The length is −1 for null. */
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

  /** Returns where the next row starts. Returns `start` when this row is incomplete or the stream ends. */
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
