/**
 * Broken and hostile files end in an error that names the file, or in malformed records beside valid ones; never in a
 * crash or unlimited memory.
 */
import { execFileSync } from "node:child_process";
import { mkdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { SourceFileError } from "#core/errors";
import { seededRandom } from "#core/random";
import { readState } from "#rir-import/check";
import { openArinXmlReader } from "#rir-import/formats/arin-xml";
import { openDelegatedReader } from "#rir-import/formats/delegated";
import type { Malformed, OpenReader } from "#rir-import/formats/record";
import { openRpslReader } from "#rir-import/formats/rpsl";
import { fixture, recorded } from "../recorded.ts";
import { type SourceFolder, sourceFolder } from "../source-folder.ts";

let folder: SourceFolder;
beforeAll(() => {
  folder = sourceFolder();
});
afterAll(() => folder.remove());

const object = (third: number, more = "") =>
  `inetnum: 45.1.${third}.0 - 45.1.${third}.255\nnetname: EX-${third}\n${more}source: RIPE\n\n`;

async function reportOf(name: string, content: string | Buffer) {
  const { files } = await readState([folder.write(name, content)], () => {});
  return files[0]!;
}

const errorOf = (name: string, content: string | Buffer) =>
  readState([folder.write(name, content)], () => {}).then(
    () => null,
    (error: unknown) => error,
  );

/** Reads a stream that is never held whole. */
function streamed(open: OpenReader, pieces: Iterable<string>) {
  const seen = { records: 0, ignored: 0, malformed: [] as Malformed[] };
  const reader = open("stream", {
    record: () => {
      seen.records++;
    },
    ignore: () => {
      seen.ignored++;
    },
    malformed: (problem) => seen.malformed.push(problem),
    warn: () => {},
    facts: () => {},
  });
  for (const piece of pieces) reader.push(Buffer.from(piece));
  reader.end();
  return seen;
}

function* repeated(before: string, part: string, times: number, after: string): Generator<string> {
  yield before;
  for (let index = 0; index < times; index++) yield part;
  yield after;
}

describe("a damaged RPSL dump", () => {
  const bare = "inetnum: 45.1.0.0/16\n\ninetnum: 45.2.0.0/16";
  const certificate = [
    "-----BEGIN CERTIFICATE-----",
    "MIIBszCCAVmgAwIBAgIUc3RvcnkK",
    "-----END CERTIFICATE-----",
  ];
  const certificates = [
    object(1, `remarks: ${certificate.join("\n +")}\n`),
    object(2, `remarks: ${certificate.join("\n")}\n`),
    object(3, certificate.map((line) => `remarks: ${line}\n`).join("")),
  ];
  const ranges = ["45.1.2.0 - 45.1.1.255", "45.1.0.0/33", "2a02:f00::/129", "45.1.0.0/-1"];
  const unsourced = "the file is cut off: its last object has no source, as the others have";

  it.each<readonly [string, string, number, readonly object[]]>([
    [
      "cut inside an attribute's name has a malformed object",
      object(1) + object(2).slice(0, 35),
      1,
      [{ line: 6, reason: "a line without an attribute name" }],
    ],
    [
      "cut behind a line of its last object has a malformed object",
      object(1) + object(2).split("source")[0],
      1,
      [{ line: 5, reason: unsourced }],
    ],
    ["is not suspected to be cut where no object has a source", bare, 2, []],
    ["is not suspected to be cut where the last has its source", (object(1) + object(2)).trimEnd(), 2, []],
    [
      "spliced of two copies in the middle of a line: the torn object is named, its neighbours stay",
      `${object(1)}${object(2).slice(0, 35)}\n${object(3)}`,
      2,
      [{ line: 6, value: "netn" }],
    ],
    [
      "with a certificate in remarks: kept where its lines are continued, named where they are bare",
      certificates.join(""),
      2,
      [{ line: 11, value: certificate[1] }],
    ],
    [
      "with NUL bytes: they harm only what they stand in",
      `${object(1)}inetnum: 45.1\0.2.0/24\nsource: RIPE\n\n${object(3, "descr: A\0B\n")}`,
      2,
      [{ line: 5, value: "45.1 .2.0/24" }],
    ],
    [
      "with reversed ranges and prefix lengths out of range: they are named with line and value",
      ranges.map((range) => `inetnum: ${range}\nsource: RIPE\n\n`).join("") + object(9),
      1,
      ranges.map((value, index) => ({ line: 1 + 3 * index, value })),
    ],
  ])("%s", async (_what, text, kept, malformedSamples) => {
    const report = await reportOf("damaged.db", text);

    expect(report).toMatchObject({ kept, malformed: malformedSamples.length, malformedSamples });
  });

  it("cut inside a line of its last object stops the import", async () => {
    const error = await errorOf("cut.db", object(1) + object(2).slice(0, 43));

    expect(error).toBeInstanceOf(SourceFileError);
    expect(String(error)).toContain("cut.db:6: the file is cut off: its last object has no source");
  });
});

describe("what is larger than memory should be", () => {
  const org = "<org><handle>NEXT</handle><name>Next</name></org>";
  const deep = `${"<a>".repeat(100_000)}${"</a>".repeat(100_000)}`;
  const kinds = "descr: a\norg: b\ncountry: NL\n".repeat(5000);

  it.each<readonly [string, OpenReader, Parameters<typeof repeated>, readonly object[]]>([
    [
      "an object with a million attributes is an object",
      openRpslReader,
      ["inetnum: 45.1.0.0/16\n", "remarks: x\n".repeat(10_000), 100, "source: RIPE\n\n"],
      [],
    ],
    [
      "an object of 100 MB is an object",
      openRpslReader,
      ["inetnum: 45.2.0.0/16\n", `remarks: ${"y".repeat(60_000)}\n`, 1700, "source: RIPE\n"],
      [],
    ],
    [
      "a million attributes of the kinds that are kept take the memory of the first",
      openRpslReader,
      ["inetnum: 45.1.0.0/16\n", kinds, 60, "\n"],
      [],
    ],
    [
      "statistics with a 50 MB line: that line is malformed, the rest is read",
      openDelegatedReader,
      ["2|apnic|1|1|||\n", "x".repeat(1_000_000), 50, "\napnic|AU|ipv4|1.0.0.0|256|1|allocated\n"],
      [{ line: 2, reason: "a line longer than 65,536 bytes" }],
    ],
    [
      "XML with a record of 100 MB: that one is malformed, the next is read",
      openArinXmlReader,
      ["<bulkwhois><net><comment>", "x".repeat(1_000_000), 100, `</comment></net>${org}</bulkwhois>`],
      [{ line: 1, reason: "a <net> element larger than 1 MiB", value: "net" }],
    ],
    [
      "XML nested a million deep outside of records is passed over",
      openArinXmlReader,
      ["<bulkwhois>", "<a>".repeat(10_000), 100, `${org}</bulkwhois>`],
      [],
    ],
    [
      "XML nested a hundred thousand deep inside a record is malformed",
      openArinXmlReader,
      [`<bulkwhois><net><handle>A</handle>${deep}`, "", 0, `</net>${org}</bulkwhois>`],
      [{ line: 1, reason: "a <net> that is not well formed" }],
    ],
  ])("%s", (_what, open, parts, malformed) => {
    const seen = streamed(open, repeated(...parts));

    expect(seen.records).toBe(1);
    expect(seen.malformed).toHaveLength(malformed.length);
    expect(seen.malformed).toMatchObject(malformed);
  });
});

it("statistics with counts that are zero, negative, huge or not numbers are each named", () => {
  const counts = ["0", "-1", "1e3", "4294967297", "99999999999", ""];
  const lines = counts.map((count) => `apnic|AU|ipv4|1.0.0.0|${count}|1|allocated`);
  const text = ["2|apnic|1|1|||", ...lines].join("\n");

  const { records, malformed } = recorded(openDelegatedReader, Buffer.from(text));

  expect(records).toEqual([]);
  expect(malformed.map(({ line }) => line)).toEqual([2, 3, 4, 5, 6, 7]);
});

it("XML with a billion laughs is refused, wherever the definition is", async () => {
  const entities = Array.from(
    { length: 9 },
    (_, index) => `<!ENTITY l${index + 1} "${`&l${index};`.repeat(10)}">`,
  );
  const definition = `<!DOCTYPE bulkwhois [<!ENTITY l0 "ha">${entities.join("")}]>`;
  const laugh = "<handle>A</handle><name>&l9;</name></org></bulkwhois>";
  const blanks = " ".repeat(100_000);

  for (const text of [
    `<?xml version="1.0"?>${definition}<bulkwhois><org>${laugh}`,
    `<bulkwhois>${blanks}${definition}<org>${laugh}`,
    `<bulkwhois>${blanks}<org>${definition}${laugh}`,
  ]) {
    const error = await errorOf("laughs.xml", text);
    expect(error).toBeInstanceOf(SourceFileError);
    expect(String(error)).toContain("a document type definition is refused");
  }
});

describe("a tangle", () => {
  const stair = (step: number) =>
    `ripencc|NL|ipv4|45.${step >> 8}.${step & 255}.0|${2 ** 24 + step}|19930101|allocated|a\n`;
  const stairs = (steps: number) =>
    `2|ripencc|1|1|1|1|+0\n${Array.from({ length: steps }, (_, step) => stair(step)).join("")}`;

  it("of 30,000 ranges that all cross is refused at once, where one of 500 is read", async () => {
    const startedMs = performance.now();

    expect(await reportOf("stairs.txt", stairs(500))).toMatchObject({ kept: 500 });
    expect(String(await errorOf("tangle.txt", stairs(30_000)))).toContain(
      "tangle.txt: more than 1000 ranges cross one another over 45.3.",
    );
    expect(performance.now() - startedMs).toBeLessThan(20_000);
  });
});

describe("archives with false sizes", () => {
  it("a gzip bomb is stopped at 64 MiB", async () => {
    const remark = `remarks: ${"x".repeat(991)}\n`;
    const bomb = gzipSync(object(1) + remark.repeat(80_000));

    const error = await errorOf("bomb.gz", bomb);

    expect(error).toBeInstanceOf(SourceFileError);
    expect(String(error)).toContain("bomb.gz: unpacks to more than 200 times its size");
  });

  /** Changes the sizes of the first entry in the archive's directory. */
  function zipWithUnpackedBytes(bytes: number): Buffer {
    const archive = Buffer.from(fixture("two-entries.zip"));
    let entry = archive.indexOf(Buffer.from([0x50, 0x4b, 1, 2]));
    while (archive.readUInt32LE(entry + 24) === 0)
      entry = archive.indexOf(Buffer.from([0x50, 0x4b, 1, 2]), entry + 1);
    archive.writeUInt32LE(bytes, entry + 24);
    return archive;
  }

  it("a ZIP bomb is refused by its directory, and by its actual size", async () => {
    expect(String(await errorOf("bomb.zip", zipWithUnpackedBytes(2 ** 31)))).toContain(
      "unpacks to more than 200 times its size",
    );
    expect(String(await errorOf("lying.zip", zipWithUnpackedBytes(10)))).toContain(
      "more bytes than the ZIP directory states",
    );
  });

  it.each<readonly [name: string, bytes: Buffer]>([
    ["traps.db", fixture("traps.rpsl")],
    ["arin.xml", fixture("arin-bulk.xml")],
    ["delegated.txt", fixture("delegated-extended.txt")],
    ["iana.xml", fixture("iana-ipv4.xml")],
    ["two.zip", fixture("two-entries.zip")],
    ["traps.gz", gzipSync(fixture("traps.rpsl"))],
  ])("%s with bytes changed at random is read or refused, never a crash (seed 99)", async (name, bytes) => {
    const random = seededRandom(99);
    for (let round = 0; round < 60; round++) {
      const damaged = Buffer.from(bytes);
      for (let change = 0; change <= round % 5; change++) {
        damaged[Math.floor(random() * damaged.length)] = Math.floor(random() * 256);
      }
      const cut = round % 3 === 0 ? damaged.subarray(0, Math.floor(random() * damaged.length)) : damaged;
      const error = await errorOf(name, cut);
      if (error !== null) expect([round, error]).toEqual([round, expect.any(SourceFileError)]);
    }
  });
});

it.each<readonly [string, (here: string) => unknown, string]>([
  [
    "a link that leads nowhere stops the import with its name",
    (here) => symlinkSync(join(here, "gone"), join(here, "a.db")),
    "a.db: no such file or folder",
  ],
  ["a pipe does not block it", (here) => execFileSync("mkfifo", [join(here, "a.db")]), "a.db: not a file"],
  [
    "a folder that holds itself ends",
    (here) => symlinkSync(here, join(here, "again")),
    "folders nested deeper than 8",
  ],
])("%s", async (what, make, words) => {
  const here = join(folder.path, what);
  mkdirSync(here);
  make(here);

  await expect(readState([here], () => {})).rejects.toThrow(words);
});

describe("text with a byte order mark", () => {
  it("is read as if it had none, compressed or not", async () => {
    const marked = Buffer.from(`\ufeff${object(1)}`);

    expect(await reportOf("mark.db", marked)).toMatchObject({ kept: 1, malformed: 0 });
    expect(await reportOf("mark.gz", gzipSync(marked))).toMatchObject({ kept: 1, malformed: 0 });
  });
});

describe("a file that ends as DOS ended texts", () => {
  const eof = "\x1a";

  it.each([
    ["behind an empty line", eof],
    ["behind the last line", eof, -1],
    ["with a line's end behind it", `${eof}\r\n`],
    ["filled up to a record", eof.repeat(128)],
    ["within a stream's chunks", eof.repeat(70)],
  ])("%s is read without it", async (what, end, cut = 0) => {
    const text = (object(1) + object(2)).slice(0, cut || undefined) + end;

    for (const content of [text, gzipSync(text)])
      expect(await reportOf(`${what}.db`, content)).toMatchObject({ read: 2, kept: 2, malformed: 0 });
  });

  it("statistics, geofeeds and XML alike", async () => {
    const delegated = await reportOf(
      "dos.txt",
      `2|ripencc|1|1|1|1|+0\r\nripencc|NL|ipv4|193.0.0.0|768|19930101|allocated|a\r\n${eof}`,
    );
    const xml = await reportOf("dos.xml", Buffer.concat([fixture("iana-ipv4.xml"), Buffer.from(eof)]));

    expect(delegated).toMatchObject({ kept: 1, malformed: 0 });
    expect(xml.malformed).toBe((await reportOf("iana.xml", fixture("iana-ipv4.xml"))).malformed);
  });

  it("but an error within it stays an error", async () => {
    expect(await reportOf("within.db", `${object(1)}${eof}\n${object(2)}`)).toMatchObject({ malformed: 1 });
  });
});
