/** Rows in bulk into the database: binary COPY, no text made or parsed for numbers and addresses. */
import { once } from "node:events";
import type { Writable } from "node:stream";
import { finished } from "node:stream/promises";
import type { PoolClient } from "pg";
import { from as copyFrom } from "pg-copy-streams";

const flushBytes = 262_144;
const postgresEpochMs = Date.UTC(2000, 0, 1);

/**
 * Copies what `write` puts into the table's columns. Throws what the server refused, or what `write` threw;
 * then nothing of it is written.
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

/** Takes rows: `row`, then one call per column, in order; `flush` now and then, when `isFull`. */
export class CopyWriter {
  readonly #stream: Writable;
  readonly #columns: number;
  #bytes: Buffer = Buffer.allocUnsafe(2 * flushBytes);
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

  /** A bigint as its higher and lower 32 bits. */
  int64(high: number, low: number): void {
    this.#putInt32(8);
    this.#putInt32(high | 0);
    this.#putInt32(low | 0);
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

  /** A timestamptz, to the millisecond; Postgres counts microseconds from the year 2000. */
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

  /** An address of `count` words (1 or 4) from `words`, starting at `start`. */
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

  /** True when enough is gathered that `flush` should be awaited. */
  get isFull(): boolean {
    return this.#length >= flushBytes;
  }

  /** Hands what is gathered to the server; waits while it has no room. */
  async flush(): Promise<void> {
    if (this.#length === 0) return;
    const hasRoom = this.#stream.write(this.#bytes.subarray(0, this.#length));
    this.#bytes = Buffer.allocUnsafe(2 * flushBytes);
    this.#length = 0;
    if (!hasRoom) await once(this.#stream, "drain");
  }

  /** Called once, by `writeCopy`. */
  async end(): Promise<void> {
    this.#putInt16(-1);
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
 * PostgreSQL's binary format of COPY (its documentation, COPY, "Binary Format"): what read-copy.ts and
 * write-copy.ts share. Columns are int2, int4, int8, float4, float8 and bytea (read only), boolean, text,
 * timestamptz (written only) and inet. An inet is handed over as one 32-bit
 * word (IPv4) or four (IPv6), always a whole address without a prefix length.
 */

export const copySignature = Buffer.from("PGCOPY\n\xff\r\n\0", "latin1");

/** Address families as Postgres sends them. */
export const inetFamily = { 4: 2, 6: 3 } as const;
