/**
 * Reads every available registry file whole: its counts equal an independent count (test/rir-import/independent), or it
 * is refused for the expected reason. Special properties of some files follow.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { SourceFileError } from "#core/errors";
import { checkSources, readState } from "#rir-import/check";
import { isLong } from "../support/long.ts";
import { sharedData } from "../support/shared-data.ts";
import { readRow, refusedFiles, registryFilesIn } from "./shared-file-table.ts";

const folder = sharedData("rir");

function textOf(file: string): string {
  const bytes = readFileSync(file);
  return (bytes[0] === 0x1f && bytes[1] === 0x8b ? gunzipSync(bytes) : bytes).toString("latin1");
}

const countOf = (text: string, pattern: RegExp) => text.match(pattern)?.length ?? 0;
const check = async (file: string) => (await checkSources([file])).files[0]!;

/** By far the largest, and not imported. */
const isLibloc = (path: string) => path.includes("libloc");

describe.skipIf(folder === null)("every file", () => {
  const paths = folder === null ? [] : registryFilesIn(folder);

  it.each(paths.filter((path) => !(path in refusedFiles) && (isLong || !isLibloc(path))))(
    "%s: as many records, kept, ignored and malformed as counted independently",
    async (path) => {
      const row = await readRow(folder!, path);

      expect(row).toMatchObject({ type: "read" });
      if (row.type === "read") expect(row.counts).toEqual(row.independent);
    },
  );

  it.each(Object.entries(refusedFiles))("%s is refused", async (path, reason) => {
    const row = await readRow(folder!, path);

    expect(row).toMatchObject({ type: "refused", reason: expect.stringMatching(reason) });
  });
});

describe.skipIf(folder === null)("delegated statistics", () => {
  const delegated = folder === null ? [] : registryFilesIn(join(folder, "delegated"));

  it.each(delegated)("%s: what is ignored is told apart by kind, as the text has it", async (path) => {
    const file = join(folder!, "delegated", path);
    const text = textOf(file);
    const report = await check(file);

    expect(report.ignored["autonomous system number"]).toBe(countOf(text, /^\w+\|[A-Z]*\|asn\|/gm));
    for (const status of ["available", "reserved"]) {
      expect(report.ignored[`status ${status}`] ?? 0).toBe(
        countOf(text, new RegExp(`^\\w+\\|[A-Z]*\\|ipv[46]\\|[^|]*\\|\\d+\\|\\d*\\|${status}\\b.*$`, "gm")),
      );
    }
    expect(report.fileDate).toMatch(/^20(13|19|24|26)-\d\d-\d\d$/);
  });

  it("LACNIC's file that promises more than it holds is warned of", async () => {
    const report = await check(sharedData("rir/delegated/delegated-lacnic-20260213.txt.gz")!);

    expect(report.warnings).toEqual(["the summary promises 15570 asn records, the file has 14050"]);
  });

  it("the NRO's conflict cases without a version line are read with a warning", async () => {
    const report = await check(sharedData("rir/nro/ripe-ncc-tests/previous")!);

    expect(report).toMatchObject({
      read: 32,
      kept: 11,
      malformed: 0,
      warnings: ["the file has no version line"],
    });
  });
});

describe.skipIf(folder === null)("RPSL", () => {
  it("the test objects: each malformed one is named with its line and value", async () => {
    const file = sharedData("rir/rpsl/ripe-whois-test-objects.rpsl.gz")!;
    const lines = textOf(file).split("\n");
    const report = await check(file);

    expect(report).toMatchObject({ read: 1635, malformed: 24 });
    expect(report.malformedSamples).toHaveLength(20);
    for (const { line, value } of report.malformedSamples) expect(lines[line - 1]).toContain(value);
  });

  it("ARIN's archive: the text entry is read, empty entries are passed over", async () => {
    const { files: reports } = await checkSources([sharedData("rir/rpsl/ripe-whois-grs/arin.test.zip")!]);

    expect(reports).toMatchObject([
      {
        registry: "arin",
        read: 5,
        kept: 3,
        ignored: { "object class ashandle": 1, "object class pochandle": 1 },
      },
    ]);
    expect(reports[0]?.file).toMatch(/arin\.test\.zip!arin_db\.txt$/);
  });

  it("libloc has RPSL's syntax but none of its address classes: read to the end, nothing kept, and said so", async () => {
    const file = sharedData("rir/geo/ipfire-libloc-20221029.rpsl.gz")!;
    const text = textOf(file);
    const report = await check(file);

    expect(report).toMatchObject({ kept: 0, malformed: 0 });
    expect(report.ignored).toEqual({
      "object class net": countOf(text, /^net:/gm),
      "object class aut-num": countOf(text, /\n\naut-num:/g),
    });
    expect(report.warnings).toEqual(["nothing of it is kept: no networks and no organisations"]);
  });
});

describe.skipIf(folder === null)("IANA's registries", () => {
  const files = folder === null ? [] : registryFilesIn(join(folder, "iana"));

  it.each(files)("%s: the date, and what is reserved", async (path) => {
    const file = join(folder!, "iana", path);
    const report = await check(file);

    expect(report).toMatchObject({ format: "iana-xml", registry: "iana", fileDate: "2025-10-10" });
    expect(report.ignored["status reserved"]).toBe(countOf(textOf(file), /<status>RESERVED</g));
  });
});

describe.skipIf(folder === null)("broken downloads", () => {
  const broken = (name: string) => join(folder!, "broken", name);

  it("an HTML page and a truncated file are named, and stop an import", async () => {
    const files = [
      "delegated-apnic-extended-20240203-HTTP-ERROR.txt",
      "delegated-ripencc-extended-20260720-TRUNCATED.txt.gz",
    ].map(broken);

    expect((await checkSources(files)).broken.map(({ file }) => file)).toEqual(files);
    for (const file of files) await expect(readState([file], () => {})).rejects.toThrow(SourceFileError);
  });

  it("two copies spliced in the middle of a line: the torn record is named, and the counts are warned of", async () => {
    const report = await check(broken("delegated-iana-20190912.txt.gz"));

    expect(report.malformedSamples).toMatchObject([{ line: 1007, value: "|3|19990401|arin" }]);
    expect(report.malformed).toBe(1);
    expect(report.warnings).toHaveLength(3);
  });
});
