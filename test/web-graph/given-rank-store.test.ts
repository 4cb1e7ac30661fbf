/** Ranks from files of other engines: what is stored, and what is refused with nothing changed. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { parquetWriteFile } from "hyparquet-writer";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { storeGivenRanks } from "#coordinator/crawl/web-graph/given-rank-store";
import { testDatabase } from "../support/database.ts";
import { forThisFile } from "../support/for-this-file.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const at = new Date("2030-01-01T12:00:00Z");
const [least, most] = [-(2n ** 63n), 2n ** 63n - 1n];
const head = "host_hash,url_hash,page_rank\n";

const database = await forThisFile(testDatabase());
const folder = temporaryFolder("nearcrawl-ranks-");
beforeEach(async () => {
  await database.pool.query(
    `insert into frontier_url (host_hash, url_hash, url)
     values ($1, $2, 'http://a.example/'), ($1, 7, 'http://a.example/b'), (3, $1, 'http://b.example/')`,
    [least.toString(), most.toString()],
  );
  await database.pool.query("insert into url_rank values (3, $1, 0.5, $2)", [least.toString(), at]);
});
afterEach(async () => {
  await database.pool.query("truncate frontier_url, url_rank");
});

const store = async (...files: string[]) =>
  await storeGivenRanks(database.pool, { files, at, onProgress: () => {} });

async function stored(): Promise<unknown[][]> {
  const { rows } = await database.pool.query(
    "select host_hash, url_hash, page_rank from url_rank order by host_hash, url_hash",
  );
  return rows.map(Object.values);
}

function csv(text: string, name = "ranks.csv"): string {
  writeFileSync(join(folder, name), text);
  return join(folder, name);
}

function parquet(ranks: readonly number[], name = "ranks.parquet", hosts = [least, least, 3n, 99n]): string {
  const of = <Value>(values: readonly Value[]) => values.slice(0, ranks.length);
  parquetWriteFile({
    filename: join(folder, name),
    columnData: [
      { name: "page_rank", data: [...ranks], type: "DOUBLE" },
      { name: "url_hash", data: of([most, 7n, least, 1n]), type: "INT64" },
      { name: "host_hash", data: of(hosts), type: "INT64" },
    ],
    rowGroupSize: 2,
  });
  return join(folder, name);
}

describe("ranks of another engine", () => {
  it("replace those that were there, from Parquet in any order of columns, without URLs beyond the frontier", async () => {
    const found = await store(parquet([0.25, 0.125, 0.5, 0.0625]));

    expect(found).toEqual({ ranked: 3, notInFrontier: 1 });
    expect(await stored()).toEqual([
      [`${least}`, "7", 0.125],
      [`${least}`, `${most}`, 0.25],
      ["3", `${least}`, 0.5],
    ]);
  });

  it("come from several CSV files, with and without a line's end at the end", async () => {
    const first = csv(`page_rank,host_hash,more,url_hash\r\n1.25e-1,${least},x,7\r\n`, "1.csv");
    const second = csv(`${head}${least},${most},0.25`, "2.csv");

    expect(await store(first, second)).toEqual({ ranked: 2, notInFrontier: 0 });
    expect(await stored()).toEqual([
      [`${least}`, "7", 0.125],
      [`${least}`, `${most}`, 0.25],
    ]);
  });

  const good = `${least},7,0.125\n`;
  const faults: readonly (readonly [what: string, file: () => string, words: RegExp])[] = [
    ["a rank of nothing", () => csv(`${head}${good}3,4,0\n`), /ranks\.csv:3: page_rank is 0, not above 0/],
    ["no number", () => csv(`${head}${good}3,4,NaN\n`), /ranks\.csv:3: page_rank is NaN/],
    [
      "endless ranks",
      () => parquet([0.1, Number.POSITIVE_INFINITY]),
      /ranks\.parquet:2: page_rank is Infinity/,
    ],
    ["ranks below 32 bits", () => parquet([0.1, 0.1, 1e-60]), /ranks\.parquet:3: page_rank is 1e-60/],
    ["ranks that do not add up to 1", () => parquet([0.1, 1.5]), /ranks\.parquet:2: page_rank is 1\.5/],
    ["a missing field", () => csv(`${head}${good}3,4\n`), /ranks\.csv:3: page_rank is missing/],
    [
      "hashes that lost digits",
      () => csv(`${head}${good}1.2345678901234568e+18,4,0.1`),
      /ranks\.csv:3: host_hash is 1\.23.*, not a whole number of 64 bits/,
    ],
    [
      "hashes beyond 64 bits",
      () => csv(`${head}3,9223372036854775808,0.1`),
      /ranks\.csv:2: url_hash is 9223/,
    ],
    [
      "a missing column",
      () => csv("host_hash,page_rank\n1,0.1\n"),
      /ranks\.csv:1: there is no column url_hash/,
    ],
    ["an endless line", () => csv(head + "1".repeat(2000)), /ranks\.csv:2: has over 1000 characters/],
    ["no row", () => csv(head), /ranks\.csv: there is no rank in it/],
    [
      "one URL twice",
      () => csv(`${head}${good}${least},${most},0.1\n${good}`),
      /ranks\.csv:4: the URL with the hashes -9223372036854775808,7 has two ranks/,
    ],
    [
      "another database's ranks",
      () => csv(`${head}5,6,0.1\n`),
      /ranks\.csv:2: the URL with the hashes 5,6 is not in the frontier, and neither is any other/,
    ],
    ["what is no Parquet", () => csv("host_hash", "ranks.parquet"), /ranks\.parquet: cannot be read: /],
  ];
  it.each(faults)(
    "are refused with file, row and value for %s, and nothing is changed",
    async (_what, file, words) => {
      await expect(store(file())).rejects.toThrow(words);

      expect(await stored()).toEqual([["3", `${least}`, 0.5]]);
    },
  );
});
