/** Several threads read what one reads, in the same order, and end together when a file is bad. */
import { rmSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { SourceFileError } from "#core/errors";
import { formatRange } from "#core/ip/range";
import { listSourceFiles } from "#rir-import/read/open-source";
import { readInThreads } from "#rir-import/read/read-in-threads";
import { buildState } from "#rir-import/tree/to-subnets";
import { generateRegistry } from "../../lab/generate/generate-registry.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";
import { type SourceFolder, sourceFolder } from "../source-folder.ts";
import { wantedSubnets } from "../wanted-subnets.ts";

let generated: string;
let folder: SourceFolder;
beforeAll(async () => {
  generated = temporaryFolder("threads-");
  await generateRegistry({ objects: 3000, seed: 9, folder: generated, faults: true });
  folder = sourceFolder();
});
afterAll(() => {
  rmSync(generated, { recursive: true });
  folder.remove();
});

async function stateBy(threads: number, files: readonly string[]) {
  const { store, reports } = await readInThreads(files, () => {}, { threads });
  const state = buildState(store);
  const subnets = [...wantedSubnets(state)].map(({ range, holder, ...subnet }) => ({
    ...subnet,
    range: formatRange(range),
    holder: holder === null ? null : state.holders.at(holder),
  }));
  const counts = reports.map(({ seconds: _, ...report }) => report);
  return { subnets, counts, summary: state.summary };
}

describe("several threads", () => {
  it("come to the same subnets, holders, reports and order as one", async () => {
    const files = await listSourceFiles([generated]);

    const [one, three] = [await stateBy(1, files), await stateBy(3, files)];

    expect(one.subnets.length).toBeGreaterThan(2000);
    expect(three).toEqual(one);
  });

  it("keep which file an opaque-id belongs to, and which record was read first", async () => {
    const statistics = (id: string) =>
      `2|ripencc|20260101|1||20260101|+0000\nripencc|NL|ipv4|${id}.0.0.0|256|20100101|allocated|same-id\n`;
    const object = (name: string) => `inetnum: 45.0.0.0 - 45.0.0.255\nnetname: ${name}\nsource: RIPE\n`;
    const files = [
      folder.write("1.db", object("FIRST")),
      folder.write("2.txt", statistics("46")),
      folder.write("3.txt", statistics("47")),
      folder.write("4.db", object("SECOND")),
    ];

    const [one, four] = [await stateBy(1, files), await stateBy(4, files)];

    expect(four).toEqual(one);
    expect(four.subnets.map(({ name, holder }) => name || holder?.key)).toEqual([
      "FIRST",
      "ripencc:opaque-id:same-id",
      "ripencc:opaque-id:same-id@2",
    ]);
  });

  it("find the same geofeeds, in whichever piece an object names one", async () => {
    const named = (at: number) =>
      `inetnum: 45.${at >> 8}.${at & 255}.0/24\nnetname: EX-${at}\ndescr: ${"x".repeat(500)}\ngeofeed: https://${at}.example/g.csv\nsource: RIPE\n\n`;
    const files = [0, 1].map((part) =>
      folder.write(
        `named-${part}.db`,
        Array.from({ length: 300 }, (_, at) => named(300 * part + at)).join(""),
      ),
    );

    const { store } = await readInThreads(files, () => {}, { threads: 3, pieceBytes: 10_000 });

    const found = store.geofeeds.map(({ url, range }) => `${formatRange(range)} ${url}`);
    const wanted = Array.from(
      { length: 600 },
      (_, at) => `45.${at >> 8}.${at & 255}.0/24 https://${at}.example/g.csv`,
    );
    expect(found.sort()).toEqual(wanted.sort());
  });

  it("tell of progress as a sum, up to the whole", async () => {
    const files = await listSourceFiles([generated]);
    const told: { done: number; total: number; records: number }[] = [];

    const { reports } = await readInThreads(
      files,
      ({ bytesDone, bytesTotal, records }) => told.push({ done: bytesDone, total: bytesTotal, records }),
      { threads: 3 },
    );

    const last = told.at(-1);
    expect(last?.done).toBe(last?.total);
    expect(last?.records).toBe(reports.reduce((sum, { read }) => sum + read, 0));
  });

  it("name the file, line and reason that another thread met", async () => {
    const good = folder.write("good.db", "inetnum: 45.0.0.0/8\nsource: RIPE\n");
    const bad = folder.write("page.db", "<html><title>Moved</title></html>");

    const reading = readInThreads([good, bad], () => {}, { threads: 2 });

    await expect(reading).rejects.toThrow(SourceFileError);
    await expect(reading).rejects.toMatchObject({
      file: bad,
      line: 1,
      message: `${bad}:1: a web page ("Moved"), not a registry file`,
    });
  });
});
