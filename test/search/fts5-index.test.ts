/** The index in a file of SQLite: what every engine does, and what a file may meet. */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setImmediate } from "node:timers/promises";
import { describe, expect, it, vi } from "vitest";
import { Fts5Index } from "#coordinator/tell/search/engine/fts5-index-store";
import { openSqlite } from "#coordinator/tell/search/engine/sqlite-store";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { engineContract, indexed, questionOf } from "./engine-contract.ts";
import { openFts5 } from "./open-engines.ts";

const newPath = () => join(temporaryFolder("fts5-"), "search.sqlite");

engineContract("an index in a file", async () => await openFts5(newPath()));

const ferry = indexed({ url: "https://a.example/page", text: "ferry" }, 1);
const asked = await questionOf({ all: ["ferry"] });

describe("the file of an index", () => {
  const written = async () => {
    const path = newPath();
    const index = await Fts5Index.open(path);
    await index.write([ferry]);
    index.close();
    return path;
  };

  it("is made anew if it is of another format", async () => {
    const path = await written();
    const file = await openSqlite(path);
    file.exec("pragma user_version = 999");
    file.close();

    const index = await Fts5Index.open(path);

    expect([index.pages, index.search(asked).total]).toEqual([0, 0]);
    index.close();
  });

  it.each([
    ["no file of SQLite", () => Buffer.from("this is a letter, and no database".repeat(1000))],
    ["damaged at its start", (whole: Buffer) => whole.fill(7, 100, 4096)],
    ["damaged throughout", (whole: Buffer) => whole.fill(7, 4096)],
  ])("is made anew if it is %s", async (_, damaged) => {
    const path = await written();
    writeFileSync(path, damaged(readFileSync(path)));

    const index = await Fts5Index.open(path);

    expect([index.pages, await index.state(), index.search(asked).total]).toEqual([0, null, 0]);
    await index.write([ferry]);
    expect(index.search(asked).total).toBe(1);
    index.close();
  });

  it("is opened although a process that was killed left its lock", async () => {
    const path = await written();
    mkdirSync(`${path}.lock`);

    const index = await Fts5Index.open(path);

    expect(index.search(asked).total).toBe(1);
    index.close();
  });

  it("knows how many pages it has and how large it is", async () => {
    const index = await Fts5Index.open(newPath());
    const empty = index.bytes;
    await index.write(Array.from({ length: 50 }, (_, at) => numbered(at)));
    await index.write([numbered(7), { ...numbered(8), op: "delete" } as never]);

    expect(index.pages).toBe(49);
    expect(index.bytes).toBeGreaterThan(empty);
    index.clear();
    expect([index.pages, index.search(asked).total, index.wordsLike("ferry")]).toEqual([0, 0, []]);
    index.close();
  });
});

const numbered = (at: number) =>
  indexed({ url: `https://a.example/${at}`, title: "Ferry", text: `ferry ${at}` }, 1);

describe("an index that is being filled", () => {
  it("answers between two pages of a batch, and forgets a batch that failed", async () => {
    const index = await Fts5Index.open(newPath());
    const totals = new Set<number>();
    const failing = { ...ferry, id: null as never };

    const writing = index.write([...Array.from({ length: 400 }, (_, at) => numbered(at)), failing]);
    const isOver = writing.then(
      () => true,
      () => true,
    );
    while (!(await Promise.race([isOver, setImmediate(false)]))) totals.add(index.search(asked).total);

    await expect(writing).rejects.toThrow();
    expect(totals.size).toBeGreaterThan(1);
    expect([index.pages, index.search(asked).total]).toEqual([0, 0]);
    await index.write([ferry]);
    expect(index.search(asked).total).toBe(1);
    index.close();
  });

  it("ranks of very many matches those with the words in their titles, and counts all", async () => {
    const index = await Fts5Index.open(":memory:");
    const plain = (at: number) => indexed({ url: `https://b.example/${at}`, text: "ferry" }, 1);
    const long = (at: number) =>
      indexed({ url: `https://a.example/${at}`, title: "Ferry", text: `boat${at % 2} `.repeat(1000) }, 1);
    await index.write(Array.from({ length: 10_001 }, (_, at) => plain(at)));
    await index.write(Array.from({ length: 20 }, (_, at) => long(at)));

    const few = index.search({ ...asked, most: 20 });
    const many = index.search({ ...asked, most: 30 });
    const some = index.search({ ...(await questionOf({ all: ["ferry"], none: ["boat1"] })), most: 10 });

    expect(few.matches.every(({ host }) => host === "a.example")).toBe(true);
    expect(many.matches.some(({ host }) => host === "b.example")).toBe(true);
    expect([few.total, many.total, many.matches.length]).toEqual([10_021, 10_021, 30]);
    expect(some.matches.map(({ url }) => Number(url.split("/").at(-1)) % 2)).toEqual(Array(10).fill(0));
    expect(some.total).toBe(10_011);
    index.close();
  });

  it("ends a search that takes too long with what it has found, and says so", async () => {
    const index = await Fts5Index.open(":memory:");
    await index.write(Array.from({ length: 300 }, (_, at) => numbered(at)));
    let nowMs = performance.now();
    const clock = vi.spyOn(performance, "now").mockImplementation(() => (nowMs += 600));

    const cut = index.search({ ...asked, most: 1000 });
    clock.mockRestore();

    expect(cut).toMatchObject({ total: 300, isPartial: true });
    expect(cut.matches.length).toBeGreaterThan(0);
    expect(cut.matches.length).toBeLessThan(300);
    expect(index.search({ ...asked, most: 1000 })).toMatchObject({ isPartial: false, total: 300 });
    index.close();
  });
});
