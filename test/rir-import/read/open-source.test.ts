/** The first bytes decide what a file is, and errors name the file. */
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { SourceFileError } from "#core/errors";
import { readState } from "#rir-import/check";
import { temporaryFolder } from "../../support/temporary-folder.ts";
import { fixture, fixtures } from "../recorded.ts";

let folder = "";
beforeAll(() => {
  folder = temporaryFolder("rir-open-");
});
afterAll(() => rmSync(folder, { recursive: true }));

function written(name: string, bytes: Buffer | string): string {
  const file = join(folder, name);
  writeFileSync(file, bytes);
  return file;
}

const rpsl = fixture("traps.rpsl");

describe("packing", () => {
  it.each([
    ["plain", "dump.gz", rpsl],
    ["gzip", "dump.txt", gzipSync(rpsl)],
    [
      "gzip of two members",
      "two.gz",
      Buffer.concat([gzipSync(rpsl.subarray(0, 700)), gzipSync(rpsl.subarray(700))]),
    ],
  ])("%s is recognised by its first bytes, whatever its name", async (_packing, name, bytes) => {
    const { files } = await readState([written(name, bytes)], () => {});

    expect(files).toMatchObject([
      { format: "rpsl", read: 23, kept: 13, malformed: 5, textBytes: rpsl.length },
    ]);
  });

  it("reads the data entries of a ZIP archive, stored and deflated, and skips documents and empty ones", async () => {
    // The first bytes decide, whatever the name says.
    const archive = written("arin.gz", fixture("two-entries.zip"));

    const { files } = await readState([archive], () => {});

    expect(files.map(({ file, kept }) => ({ file, kept }))).toEqual([
      { file: `${archive}!data/arin_db.txt`, kept: 3 },
      { file: `${archive}!stored.rpsl`, kept: 1 },
    ]);
  });

  it("reads ARIN's XML and not the text of the same name beside it, and says so", async () => {
    const archive = join(fixtures, "both-forms.zip");

    const { files } = await readState([archive], () => {});

    expect(files.map(({ file, format, warnings }) => ({ file, format, warnings }))).toEqual([
      {
        file: `${archive}!arin_db.xml`,
        format: "arin-xml",
        warnings: ["arin_db.txt holds the same as text and is passed over"],
      },
      { file: `${archive}!other.txt`, format: "rpsl", warnings: [] },
    ]);
  });
});

describe("a file that is not what it claims to be stops with its name", () => {
  const damagedZip = () => {
    const bytes = Buffer.from(fixture("two-entries.zip"));
    bytes[bytes.indexOf("45.40.0.0") + 1] = 0x36;
    return bytes;
  };

  it.each<readonly [name: string, bytes: () => Buffer, reason: string]>([
    ["empty.txt", () => Buffer.alloc(0), "the file is empty"],
    ["empty.gz", () => gzipSync(""), "the file is empty"],
    ["page.txt", () => fixture("web-page.txt"), ':1: a web page ("404 Not Found"), not a registry file'],
    [
      "page.gz",
      () => gzipSync(fixture("web-page.txt")),
      ':1: a web page ("404 Not Found"), not a registry file',
    ],
    ["cut.gz", () => gzipSync(rpsl).subarray(0, 500), "the gzip data end early: the download is incomplete"],
    [
      "damaged.gz",
      () => Buffer.concat([gzipSync(rpsl).subarray(0, 200), Buffer.alloc(600, 0xff)]),
      "damaged gzip data",
    ],
    [
      "cut.zip",
      () => fixture("two-entries.zip").subarray(0, 700),
      "the ZIP archive is damaged or ends early",
    ],
    ["damaged.zip", damagedZip, "stored.rpsl: the ZIP entry is damaged"],
    [
      "table.csv",
      () => Buffer.from("# a table\n1.0.0.0,1.0.0.255,AU\n"),
      ":2: not a registry format that is known",
    ],
    [
      "prefixes.txt",
      () => Buffer.from("1.0.0.0/24\n1.0.4.0/22\n"),
      ':1: not a registry format that is known: it starts "1.0.0.0/24"',
    ],
    ["comments.txt", () => Buffer.from("# only\n% comments\n\n"), "nothing but comments"],
    ["binary.bin", () => Buffer.alloc(3000), "not a registry"],
    ["other.xml", () => Buffer.from('<?xml version="1.0"?><feed/>'), ":1: XML with the root <feed>"],
    [
      "numbers.xml",
      () => Buffer.from('<registry id="as-numbers"></registry>'),
      "XML with the root <registry>",
    ],
    [
      "entities.xml",
      () => Buffer.from('<?xml version="1.0"?>\n<!DOCTYPE bulkwhois [<!ENTITY a "b">]><bulkwhois/>'),
      ":2: a document type definition is refused",
    ],
    [
      "garbled.txt",
      () => Buffer.from(`2|apnic|1|1|||\n${"apnic|JP|ipv4|x|1|1|allocated\n".repeat(200)}`),
      "200 of 200 records are malformed",
    ],
  ])("%s", async (name, bytes, reason) => {
    const file = written(name, bytes());

    const error: unknown = await readState([file], () => {}).catch((thrown: unknown) => thrown);

    expect(error).toBeInstanceOf(SourceFileError);
    expect((error as Error).message).toContain(file);
    expect((error as Error).message).toContain(reason);
  });

  it("a file that is not there", async () => {
    await expect(readState([join(folder, "nowhere")], () => {})).rejects.toThrow("no such file or folder");
  });
});

describe("folders", () => {
  it("are read by name, without checksums, read-mes and hidden files, each file once", async () => {
    const here = temporaryFolder("rir-folder-");
    for (const name of ["b.rpsl", "a.rpsl", "README.txt", "a.rpsl.md5", ".hidden"]) {
      writeFileSync(
        join(here, name),
        name.endsWith("rpsl") ? `inetnum: 45.0.0.0/16\nnetname: ${name}\n` : "no",
      );
    }

    const { files, state } = await readState([here, join(here, "a.rpsl")], () => {});
    rmSync(here, { recursive: true });

    expect(files.map(({ file }) => file)).toEqual([join(here, "a.rpsl"), join(here, "b.rpsl")]);
    expect(state.summary).toMatchObject({ subnets: 1, duplicates: 1 });
  });

  it("that hold nothing are an error", async () => {
    const here = temporaryFolder("rir-empty-");

    await expect(readState([here], () => {})).rejects.toThrow("the folder holds no registry files");
    rmSync(here, { recursive: true });
  });
});
