/** Ranks that another engine computed over the exported graph, read from its Parquet or CSV files. */
import { createReadStream } from "node:fs";
import { asyncBufferFromFile, parquetScan } from "hyparquet";
import type { Pool, PoolClient } from "pg";
import { SourceFileError } from "#core/errors";
import { writeCopy } from "#db/copy";
import { inTransaction } from "../../database/transaction.ts";
import { replaceRanks } from "./rank-store.ts";

const columns = ["host_hash", "url_hash", "page_rank"] as const;

/** A row group is decoded as a whole; Spark's and DuckDB's have at most a few million rows. */
const mostRowsOfGroup = 20_000_000;

const mostCharactersOfLine = 1000;

/** A row before it is checked: its number (of a CSV file its line), then the columns. */
type GivenRow = readonly [row: number, ...values: readonly unknown[]];

interface GivenRanks {
  readonly files: readonly string[];
  readonly at: Date;
  readonly onProgress: (rows: number) => void;
}

interface StoredRanks {
  readonly ranked: number;
  /** Links lead beyond the frontier, and URLs may have gone since the export. */
  readonly notInFrontier: number;
}

/**
 * Replaces all ranks in one transaction. Throws a SourceFileError with file, row and value for what no engine computes
 * over this graph; nothing is changed then.
 */
export async function storeGivenRanks(pool: Pool, given: GivenRanks): Promise<StoredRanks> {
  return await inTransaction(pool, async (client) => {
    await client.query(
      `create temporary table given_rank (file integer, row bigint, host_hash bigint, url_hash bigint, page_rank real)
       on commit drop`,
    );
    const rows = await stage(client, given);
    await client.query("analyze given_rank");
    let ranked = 0;
    await replaceRanks(client, async (table) => {
      await refuseRow(
        client,
        given.files,
        "group by host_hash, url_hash having count(*) > 1",
        "has two ranks",
      );
      const written = await client.query(
        `insert into ${table} (host_hash, url_hash, page_rank, ranked_at)
         select u.host_hash, u.url_hash, g.page_rank, $1::timestamptz
         from given_rank g
         join frontier_url u on u.host_hash = g.host_hash and u.url_hash = g.url_hash`,
        [given.at],
      );
      ranked = written.rowCount ?? 0;
      if (ranked > 0) return;
      const words = "is not in the frontier, and neither is any other URL of the file";
      await refuseRow(client, given.files, "group by host_hash, url_hash", words);
      throw new SourceFileError(given.files.join(", "), null, "there is no rank in it");
    });
    return { ranked, notInFrontier: rows - ranked };
  });
}

/** Throws for a row that the grouping finds. */
async function refuseRow(
  client: PoolClient,
  files: readonly string[],
  grouping: string,
  words: string,
): Promise<void> {
  const { rows } = await client.query<{ place: readonly [string, string]; key: string }>(
    `select max(array[file, row]) as place, host_hash || ',' || url_hash as key
     from given_rank ${grouping} limit 1`,
  );
  const [found] = rows;
  if (found === undefined) return;
  const [file, row] = found.place.map(Number);
  throw new SourceFileError(files[file!]!, row!, `the URL with the hashes ${found.key} ${words}`);
}

/** Returns the number of rows. */
async function stage(client: PoolClient, { files, onProgress }: GivenRanks): Promise<number> {
  let count = 0;
  const into = { table: "given_rank", columns: ["file", "row", ...columns] };
  await writeCopy(client, into, async (copy) => {
    for (const [number, file] of files.entries()) {
      for await (const rows of rowsOf(file)) {
        for (const [row, hostHash, urlHash, pageRank] of rows) {
          copy.row();
          copy.int32(number);
          copy.bigint(BigInt(row));
          copy.bigint(hashOf(file, row, "host_hash", hostHash));
          copy.bigint(hashOf(file, row, "url_hash", urlHash));
          copy.float32(rankOf(file, row, pageRank));
          count += 1;
          if (!copy.isFull) continue;
          await copy.flush();
          onProgress(count);
        }
      }
    }
  });
  return count;
}

/** A hash that went through a floating-point number has lost digits, so it is refused as such. */
function hashOf(file: string, row: number, name: string, value: unknown): bigint {
  const isWhole = typeof value === "bigint" || (typeof value === "string" && /^-?\d{1,19}$/.test(value));
  const hash = isWhole ? BigInt(value) : null;
  if (hash !== null && BigInt.asIntN(64, hash) === hash) return hash;
  throw new SourceFileError(file, row, `${name} is ${shown(value)}, not a whole number of 64 bits`);
}

/** The rank is stored in 32 bits, in which it must still be positive. */
function rankOf(file: string, row: number, value: unknown): number {
  const rank = typeof value === "string" || typeof value === "number" ? Number(value) : Number.NaN;
  if (Math.fround(rank) > 0 && rank <= 1) return rank;
  throw new SourceFileError(file, row, `page_rank is ${shown(value)}, not above 0 and at most 1`);
}

const shown = (value: unknown) => (value === undefined || value === "" ? "missing" : `${value}`.slice(0, 40));

async function* rowsOf(file: string): AsyncGenerator<Iterable<GivenRow>> {
  try {
    yield* /\.csv$/i.test(file) ? csvRows(file) : parquetRows(file);
  } catch (error) {
    if (error instanceof SourceFileError) throw error;
    throw new SourceFileError(file, null, `cannot be read: ${(error as Error).message}`, { cause: error });
  }
}

async function* csvRows(file: string): AsyncGenerator<Iterable<GivenRow>> {
  let [line, rest] = [0, ""];
  let places: readonly number[] = [];
  const rowOf = (text: string): GivenRow => {
    line += 1;
    const fields = text.trimEnd().split(",");
    return [line, ...places.map((place) => fields[place])];
  };
  for await (const piece of createReadStream(file, "utf8")) {
    const lines = `${rest}${piece}`.split("\n");
    rest = lines.pop()!;
    if (rest.length > mostCharactersOfLine)
      throw new SourceFileError(file, line + lines.length + 1, `has over ${mostCharactersOfLine} characters`);
    if (line === 0 && lines.length > 0) {
      const names = lines.shift()!.trimEnd().split(",");
      const missing = columns.find((name) => !names.includes(name));
      if (missing !== undefined) throw new SourceFileError(file, 1, `there is no column ${missing}`);
      places = columns.map((name) => names.indexOf(name));
      line = 1;
    }
    yield lines.map(rowOf);
  }
  if (rest !== "") yield [rowOf(rest)];
}

async function* parquetRows(file: string): AsyncGenerator<Iterable<GivenRow>> {
  const { ranges, readColumn } = await parquetScan({ file: await asyncBufferFromFile(file) });
  for (const range of ranges) {
    if (range.rowEnd - range.rowStart > mostRowsOfGroup)
      throw new Error(`a row group has more than ${mostRowsOfGroup} rows`);
    const data = await Promise.all(columns.map((column) => readColumn({ column, ...range })));
    yield rowsFrom(range.rowStart, data);
  }
}

function* rowsFrom(first: number, data: readonly ArrayLike<unknown>[]): Generator<GivenRow> {
  for (let at = 0; at < data[0]!.length; at++)
    yield [first + at + 1, ...data.map((column) => column[at])] as GivenRow;
}
