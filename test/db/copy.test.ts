import type { PoolClient } from "pg";
import { beforeAll, describe, expect, it } from "vitest";
import { readCopy, writeCopy } from "#db/copy";
import { testDatabase } from "../support/database.ts";
import { forThisFile } from "../support/for-this-file.ts";

const database = await forThisFile(testDatabase());

beforeAll(async () => {
  await database.pool.query(
    "create table copied (id integer primary key, small smallint, flag boolean, rtt real, name text, address inet)",
  );
});

const into = { table: "copied", columns: ["id", "small", "flag", "name", "address"] };

async function withClient<T>(work: (client: PoolClient) => Promise<T>): Promise<T> {
  const client = await database.pool.connect();
  try {
    await client.query("truncate copied");
    return await work(client);
  } finally {
    client.release();
  }
}

describe("rows by binary COPY", () => {
  it("arrive as they were written, every type, nulls too", async () => {
    const rows = await withClient(async (client) => {
      await writeCopy(client, into, async (out) => {
        out.row();
        out.int32(-7);
        out.int16(-2);
        out.boolean(true);
        out.text("é\t\\N 日本 😀");
        out.inet(Uint32Array.of(0, 0xc0000201), 1, 1);
        out.row();
        out.int32(8);
        out.null();
        out.null();
        out.text("");
        out.inet(Uint32Array.of(0x20010db8, 0, 0, 0xffffffff), 0, 4);
      });
      return (await client.query("select *, address::text as address from copied order by id")).rows;
    });

    expect(rows).toEqual([
      { id: -7, small: -2, flag: true, rtt: null, name: "é\t\\N 日本 😀", address: "192.0.2.1/32" },
      { id: 8, small: null, flag: null, rtt: null, name: "", address: "2001:db8::ffff:ffff/128" },
    ]);
  });

  it("hold bigints by halves and by their decimal text, floats and times", async () => {
    const ends = ["-9223372036854775808", "9223372036854775807"] as const;
    const { read, written } = await withClient(async (client) => {
      await client.query(
        "create temp table wide (hash bigint, rank real, at timestamptz, low bigint, high bigint)",
      );
      const columns = ["hash", "rank", "at", "low", "high"];
      await writeCopy(client, { table: "wide", columns }, async (out) => {
        out.row();
        out.int64(-2, 0xffff_fff1);
        out.float32(0.25);
        out.timestamp(new Date("1999-12-31T23:59:59.999Z"));
        for (const end of ends) out.bigint(end);
      });
      const read: number[][] = [];
      await readCopy(client, "select hash, 1e-300::float8 from wide", (row) => {
        read.push([row.half(0, 0), row.half(0, 1), row.float64(1)]);
      });
      return { read, written: (await client.query("select * from wide")).rows };
    });

    expect(read).toEqual([[-2, -15, 1e-300]]);
    const at = new Date("1999-12-31T23:59:59.999Z");
    expect(written).toEqual([{ hash: "-4294967311", rank: 0.25, at, low: ends[0], high: ends[1] }]);
  });

  it("are read as the server holds them, however chunks are cut", async () => {
    const count = 30_000;

    const { read, wrong } = await withClient(async (client) => {
      await client.query(
        `insert into copied (id, rtt, name, address)
         select n, n / 7.0, case when n % 3 = 0 then null else repeat('ü', n % 50) end,
           case when n % 2 = 0 then inet '10.0.0.0' + n else inet '2001:db8::' + n end
         from generate_series(1, $1::integer) n`,
        [count],
      );
      const wrong: number[] = [];
      let expected = 0;
      const read = await readCopy(client, "select id, name, address, rtt from copied order by id", (row) => {
        expected += 1;
        const id = row.int32(0);
        const family = id % 2 === 0 ? 4 : 6;
        const last = row.word(2, family === 4 ? 0 : 3);
        const name = row.isNull(1) ? null : row.text(1);
        const isRight =
          id === expected &&
          row.family(2) === family &&
          row.float32(3) === Math.fround(id / 7) &&
          last === (family === 4 ? 0x0a000000 + id : id) &&
          name === (id % 3 === 0 ? null : "ü".repeat(id % 50));
        if (!isRight) wrong.push(id);
      });
      return { read, wrong };
    });

    expect({ read, wrong }).toEqual({ read: count, wrong: [] });
  });

  it.each([
    ["one of them is refused", [1, 2, 1], async () => {}, "duplicate key"],
    ["the writer fails half-way", [1, 2], () => Promise.reject(new Error("half-way")), "half-way"],
  ])("are not written at all when %s, and the connection stays usable", async (_, ids, end, words) => {
    const left = await withClient(async (client) => {
      const copy = writeCopy(client, { table: "copied", columns: ["id"] }, async (out) => {
        for (const id of ids) {
          out.row();
          out.int32(id);
        }
        await out.flush();
        await end();
      });
      await expect(copy).rejects.toThrow(words);
      return (await client.query("select * from copied")).rows;
    });

    expect(left).toEqual([]);
  });

  it("may be refused by their reader half-way, and the connection stays usable", async () => {
    const answer = await withClient(async (client) => {
      const reading = readCopy(client, "select n from generate_series(1, 200000) n", (row) => {
        if (row.int32(0) === 5) throw new Error("enough");
      });
      await expect(reading).rejects.toThrow("enough");
      return (await client.query("select 1 as one")).rows;
    });

    expect(answer).toEqual([{ one: 1 }]);
  });
});
