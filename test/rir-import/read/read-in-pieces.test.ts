/**
 * A file that is cut behind empty lines, wherever the cuts come to lie and whoever reads the pieces, in whatever order,
 * gives what one reader gives: the same tree, report, line numbers and errors.
 */
import { describe, expect, it } from "vitest";
import { formatRange } from "#core/ip/range";
import { seededRandom } from "#core/random";
import { RpslReader } from "#rir-import/formats/rpsl";
import { PieceCutter } from "#rir-import/formats/rpsl-pieces";
import { FileReportBuilder } from "#rir-import/read/file-report";
import { type PieceAnswer, PiecesOfPart, readPiece } from "#rir-import/read/read-in-pieces";
import { sinkOf } from "#rir-import/read/record-sink";
import { buildState, RecordStore } from "#rir-import/tree/to-subnets";
import { wantedSubnets } from "../wanted-subnets.ts";

const disk = { sha256: "", bytesOnDisk: 0, textBytes: 0, modifiedAt: new Date(0), seconds: 0 };
const newReport = () => new FileReportBuilder("f.db", "rpsl");

function outcomeOf(store: RecordStore, report: FileReportBuilder) {
  const state = buildState(store);
  const subnets = [...wantedSubnets(state)].map(({ range, holder, ...subnet }) => ({
    ...subnet,
    range: formatRange(range),
    holder: holder === null ? null : state.holders.at(holder),
  }));
  return { subnets, summary: state.summary, report: report.finish(disk) };
}

async function orError<Outcome>(read: () => Promise<Outcome>): Promise<Outcome | string> {
  return await read().catch((error: unknown) => String(error));
}

const whole = (bytes: Buffer) =>
  orError(async () => {
    const [store, report] = [new RecordStore(), newReport()];
    const reader = new RpslReader("f.db", sinkOf("f.db", report, store));
    reader.push(bytes);
    reader.end();
    return outcomeOf(store, report);
  });

/** Every second piece is read by another, who begins with the last of them. */
const inPieces = (bytes: Buffer, pieceBytes: number, chunkBytes: number) =>
  orError(async () => {
    const [here, there, report] = [new RecordStore(), new RecordStore(), newReport()];
    const waiting: (() => void)[] = [];
    let pieces = 0;
    const reading = new PiecesOfPart("f.db", {
      receiver: here,
      firstNumber: 7,
      pieceBytes,
      hand: (piece) => {
        pieces += 1;
        if (pieces % 2 === 0) return null;
        return new Promise<PieceAnswer>((resolve) => {
          waiting.push(() => resolve(readPiece(piece, there)));
        });
      },
      onRead: () => {},
    });
    for (let at = 0; at < bytes.length; at += chunkBytes) reading.push(bytes.subarray(at, at + chunkBytes));
    for (const read of waiting.reverse()) read();
    await reading.end(report);
    here.absorb([there.parts()]);
    return outcomeOf(here, report);
  });

const file = [
  "% a comment",
  "",
  "inetnum: 45.0.0.0 - 45.0.0.255\nnetname: FIRST\norg: ORG-A-RIPE\nsource: RIPE\n",
  "organisation: ORG-A-RIPE\norg-name: Alpha Holding\nsource: RIPE\n",
  "person: Somebody\nsource: RIPE\n",
  "inetnum: 45.0.0.0 - 45.0.0.255\nnetname: SECOND\ndescr: Exempl\u00e9\nsource: RIPE\n",
  "organisation: ORG-A-RIPE\norg-name: Alpha twice\nsource: RIPE\n",
  "inetnum: 45.0.1.0/300\nsource: RIPE\n\n\n",
  "inetnum: 200.3.12/22\nowner: Exemplo Um\nownerid: BR-EX-LACNIC\ncountry: BR\nsource: LACNIC\n",
  "inetnum: 200.3.16/22\nowner: Exemplo Outro\nownerid: BR-EX-LACNIC\ncountry: BR\nsource: LACNIC\n",
  "route: 45.0.0.0/8\n+\nsource: RIPE\n",
  "inetnum: 45.0.2.0/24\ndescr: \u0000Nul\ngarbage\nsource: RIPE\n",
  "inet6num: 2a02:f00::/32\ndescr: Exampleville Networks\nsource: RIPE\n",
].join("\n");
const ends = [
  ["that is whole", "\n"],
  ["that ends inside its last object", "\ninetnum: 45.0.3.0/24\n"],
  ["that is cut off inside a line", "\ninetnum: 45.0.3.0/24\nnetna"],
] as const;

describe.each([
  ["line feeds", (text: string) => text],
  ["carriage returns too", (text: string) => text.replaceAll("\n", "\r\n")],
])("a file with %s", (_, lineEnds) => {
  it.each(ends)("%s is the same wherever it is cut", async (_name, end) => {
    const bytes = Buffer.from(lineEnds(file + end), "latin1");
    const expected = await whole(bytes);

    const wrong: unknown[] = [];
    for (let pieceBytes = 1; pieceBytes <= bytes.length + 1; pieceBytes += 1) {
      const read = await inPieces(bytes, pieceBytes, 1 + (pieceBytes % 97));
      if (JSON.stringify(read) !== JSON.stringify(expected)) wrong.push({ pieceBytes, read });
    }

    expect(wrong.slice(0, 1)).toEqual([]);
    if (typeof expected === "string") expect(expected).toMatch(/f\.db:\d+: the file is cut off/);
    else
      expect(expected.report).toMatchObject({ malformed: end === "\n" ? 2 : 3, read: expected.report.read });
  });
});

it("many reasons to ignore are counted together from the same one on", async () => {
  const text = Array.from({ length: 120 }, (_, at) => `class-${(at * 7) % 90}: x\n`).join("\n");
  const bytes = Buffer.from(text);

  const read = await inPieces(bytes, 100, 64);

  expect(read).toEqual(await whole(bytes));
  expect(Object.keys((read as ReturnType<typeof outcomeOf>).report.ignored)).toHaveLength(41);
});

it("random texts are the same in random pieces", async () => {
  const seed = 20_262;
  const random = seededRandom(seed);
  const below = (limit: number) => Math.floor(random() * limit);
  const lines = [
    ...[
      "inetnum: 45.1.2.0 - 45.1.2.255",
      "inetnum:\t45.1.2/23 # x",
      "inet6num: 2a02:f00:1::/48",
      "source: RIPE",
    ],
    ...[
      "organisation: org-ex1-ripe",
      "org-name: Example \u00e9",
      "org: ORG-EX1-RIPE",
      "descr: Some Company Ltd",
    ],
    ...[
      "+ continued",
      " more",
      "country: nl",
      "person: x",
      "# comment",
      "garbage",
      "\u0000\u00ff",
      "",
      "",
      "",
      "\r",
    ],
  ];
  for (let round = 0; round < 300; round += 1) {
    const text = Array.from({ length: 40 }, () => lines[below(lines.length)]).join("\n");
    const bytes = Buffer.from(text, "latin1");

    const read = await inPieces(bytes, 1 + below(bytes.length), 1 + below(200));

    expect([seed, round, read]).toEqual([seed, round, await whole(bytes)]);
  }
});

it("a record of 32 MB without an empty line is never collected", () => {
  let [stretchBytes, largest, pieces] = [0, 0, 0];
  const cutter = new PieceCutter(2 ** 16, {
    piece: () => {
      pieces += 1;
    },
    stretch: (bytes) => {
      stretchBytes += bytes.length;
      largest = Math.max(largest, bytes.length);
    },
    stretchesEnd: () => {},
  });
  const chunk = Buffer.from("remarks: on and on\n".repeat(2 ** 14));

  for (let bytes = 0; bytes < 2 ** 25; bytes += chunk.length) cutter.push(chunk);

  expect(pieces).toBe(0);
  expect(stretchBytes).toBeGreaterThan(2 ** 24);
  expect(largest).toBeLessThanOrEqual(chunk.length);
  expect(cutter.rest.length).toBe(0);
});
