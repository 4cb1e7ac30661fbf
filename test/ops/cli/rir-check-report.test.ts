/** The output of `nearcrawl rir check` about its files. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { filesNodes } from "#coordinator/run/registry/plan-ask";
import { textOf } from "#ops/cli/rir/plan-text";
import { checkSources } from "#rir-import/check";
import type { FileReport } from "#rir-import/read/file-report";
import { type SourceFolder, sourceFolder } from "../../rir-import/source-folder.ts";

let folder: SourceFolder;
beforeAll(() => {
  folder = sourceFolder();
});
afterAll(() => folder.remove());

const statistics =
  "2|apnic|20260101|2|||\napnic|*|ipv4|*|2|summary\napnic|JP|ipv4|1.0.16.0|4096|20110412|allocated\n";
const rpsl = Buffer.from(
  "inetnum: 45.1.0.0/16\ndescr: Funda\xe7\xe3o\nsource: LACNIC\n\n" +
    "inetnum: 45.2.0.0/16\ndescr: \xc3\xa9t\xc3\xa9\nsource: LACNIC\n\n" +
    "inetnum: 45.3.0.0/99\nsource: LACNIC\n\nperson: A\n\nperson: B\n\nroute: C\n",
  "latin1",
);

async function reportOf(contents: Readonly<Record<string, string | Buffer>>) {
  const paths = Object.entries(contents).map(([name, content]) => folder.write(name, content));
  const { files } = await checkSources(paths);
  return { files, lines: textOf(filesNodes(files)).split("\n") };
}

describe("the report of the files", () => {
  it("has each file's row, reasons for ignored records, encoding, and errors", async () => {
    const { files, lines } = await reportOf({ "a.db": rpsl, "b.txt": statistics });

    expect(lines[2]).toMatch(/a\.db +rpsl +lacnic +\d{4}-\d\d-\d\d +6 +2 +3 +1 +\d+ B/);
    expect(lines[3]).toMatch(/b\.txt +delegated +apnic +2026-01-01 +1 +1 +0 +0 +\d+ B/);
    expect(files[0]!.encoding).toEqual({ utf8Values: 1, latin1Values: 1, firstLatin1Line: 1 });
    expect(files[1]!.encoding).toBeNull();
    expect(lines.slice(4)).toEqual([
      "",
      "a.db: 1 refused, 3 ignored",
      `· ${files[0]!.file}:9: the prefix length is not between 0 and 32: "45.3.0.0/99"`,
      "· ignored 2 × object class person, 1 × object class route",
      "· values in UTF-8: 1, read as Latin-1: 1 (the first in the record at line 1)",
      "",
      "b.txt: 1 warnings",
      "· Warning: the summary promises 2 ipv4 records, the file has 1",
    ]);
  });

  it("is bounded for any file", () => {
    const malformedSample = { file: "x", line: 7, reason: "not an address range", value: "v".repeat(200) };
    const report: FileReport = {
      ...{ file: "x", format: "rpsl", registry: null, fileDate: null, sha256: "", bytesOnDisk: 1 },
      ...{ textBytes: 1_234_567_890, read: 2_000_000, kept: 0, malformed: 1_999_000, seconds: 4 },
      ignored: Object.fromEntries(Array.from({ length: 40 }, (_, index) => [`reason ${index}`, 100 - index])),
      malformedSamples: new Array(20).fill(malformedSample),
      warnings: [],
      encoding: null,
    };

    const lines = textOf(filesNodes([report])).split("\n");

    expect(lines.find((line) => line.includes("ignored 100"))).toMatch(/100 × reason 0.*89 × reason 11/);
    expect(lines.filter((line) => line.startsWith("· x:7:"))).toHaveLength(20);
    expect(Math.max(...lines.map((line) => line.length))).toBeLessThan(310);
    expect(lines).toContain("· and 1,998,980 more refused records");
  });
});
