/**
 * Every real registry file at hand, read whole, its counts checked against an independent count: plain
 * regular expressions over the unpacked text, which know nothing of the readers.
 */
import { readdirSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { gunzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { SourceFileError } from "#core/errors";
import { checkSources } from "#rir-import/main";
import { sharedData } from "../support/shared-data.ts";

const folder = sharedData("rir");
const filesIn = (name: string): readonly string[] =>
  folder === null ? [] : readdirSync(join(folder, name)).map((file) => join(folder, name, file));

function textOf(file: string): string {
  const bytes = readFileSync(file);
  return (bytes[0] === 0x1f && bytes[1] === 0x8b ? gunzipSync(bytes) : bytes).toString("latin1");
}

const countOf = (text: string, pattern: RegExp) => text.match(pattern)?.length ?? 0;
const sum = (counts: Readonly<Record<string, number>>) => Object.values(counts).reduce((a, b) => a + b, 0);
const check = async (file: string) => (await checkSources([file])).files[0]!;

describe.skipIf(folder === null)("delegated statistics", () => {
  const excerpts = ["afrinic", "apnic", "arin", "lacnic", "ripencc"];
  const files = [
    ...filesIn("delegated"),
    ...filesIn("nro/ripe-ncc-tests").filter((file) => excerpts.includes(basename(file))),
  ];

  it.each(files.map((file) => [basename(file), file] as const))(
    "%s: as many of each kind as the text has",
    async (_name, file) => {
      const text = textOf(file);
      const report = await check(file);

      expect(report.format).toBe("delegated");
      expect(report.malformed).toBe(0);
      expect(report.read).toBe(countOf(text, /^\w+\|[A-Z]*\|(?:asn|ipv4|ipv6)\|.*$/gm));
      expect(report.kept + (report.ignored["special-purpose range"] ?? 0)).toBe(
        countOf(text, /^\w+\|[A-Z]*\|ipv[46]\|[^|]*\|\d+\|\d*\|(?:allocated|assigned)\b.*$/gm),
      );
      expect(report.ignored["autonomous system number"]).toBe(countOf(text, /^\w+\|[A-Z]*\|asn\|/gm));
      for (const status of ["available", "reserved"]) {
        expect(report.ignored[`status ${status}`] ?? 0).toBe(
          countOf(text, new RegExp(`^\\w+\\|[A-Z]*\\|ipv[46]\\|[^|]*\\|\\d+\\|\\d*\\|${status}\\b.*$`, "gm")),
        );
      }
      expect(report.fileDate).toMatch(/^20(13|19|24|26)-\d\d-\d\d$/);
    },
  );

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

  it("a file of a registry that does not exist stops with its first line", async () => {
    const reading = checkSources([sharedData("rir/nro/ripe-ncc-tests/afriaprin")!]);

    await expect(reading).rejects.toThrow(
      /afriaprin:10: 300 of 300 records are malformed; the first: an unknown registry/,
    );
  });
});

describe.skipIf(folder === null)("RPSL", () => {
  const files = [
    ...filesIn("rpsl/ripe-whois-grs").filter((file) => !file.endsWith(".zip")),
    ...filesIn("rpsl").filter((file) => file.endsWith(".gz")),
  ];

  it.each(files.map((file) => [basename(file), file] as const))(
    "%s: every network and organisation is kept, dropped or reported",
    async (_name, file) => {
      const text = textOf(file);
      const report = await check(file);

      const classes = Object.entries(report.ignored).filter(([reason]) => reason.startsWith("object class"));
      const ours = report.read - sum(Object.fromEntries(classes));
      expect(report.format).toBe("rpsl");
      expect(ours).toBe(countOf(text, /^(?:inetnum|inet6num|organisation):/gim));
      for (const [reason, count] of classes) {
        const name = reason.slice("object class ".length).replace(/[*]/g, "\\*");
        expect(
          countOf(
            text,
            new RegExp(`(?:^|\\n[ \\t\\r]*\\n|\\n[#%][^\\n]*\\n|^[#%][^\\n]*\\n)(?=${name}:)`, "gi"),
          ),
        ).toBe(count);
      }
    },
  );

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
    expect(report.warnings).toEqual(["nothing of it is kept: no networks and no organisations for the tree"]);
  });
});

describe.skipIf(folder === null)("IANA's registries", () => {
  it.each(filesIn("iana").map((file) => [basename(file), file] as const))("%s", async (_name, file) => {
    const text = textOf(file);
    const report = await check(file);

    expect(report).toMatchObject({
      format: "iana-xml",
      registry: "iana",
      fileDate: "2025-10-10",
      malformed: 0,
    });
    expect(report.read).toBe(countOf(text, /<record[ >]/g));
    expect(report.ignored["status reserved"]).toBe(countOf(text, /<status>RESERVED</g));
  });
});

describe.skipIf(folder === null)("broken downloads", () => {
  const broken = (name: string) => join(folder!, "broken", name);

  it("an HTML page under the file's name", async () => {
    const reading = checkSources([broken("delegated-apnic-extended-20240203-HTTP-ERROR.txt")]);

    await expect(reading).rejects.toThrow(SourceFileError);
    await expect(reading).rejects.toThrow('HTTP-ERROR.txt:1: a web page ("302 Found")');
  });

  it("a file truncated inside a field", async () => {
    const reading = checkSources([broken("delegated-ripencc-extended-20260720-TRUNCATED.txt.gz")]);

    await expect(reading).rejects.toThrow(SourceFileError);
    await expect(reading).rejects.toThrow(
      "TRUNCATED.txt.gz:41599: the file is cut off inside a line: the summary promises 100395 ipv4 records, the file has 41595",
    );
  });

  it("two copies spliced in the middle of a line: the torn record is named, and the counts are warned of", async () => {
    const report = await check(broken("delegated-iana-20190912.txt.gz"));

    expect(report.malformedSamples).toMatchObject([{ line: 1007, value: "|3|19990401|arin" }]);
    expect(report.malformed).toBe(1);
    expect(report.warnings).toHaveLength(3);
  });
});

describe.skipIf(folder === null)("what is no registry file", () => {
  it.each(
    filesIn("geo")
      .filter((file) => /csv|LICENSE/.test(file))
      .map((file) => [basename(file), file] as const),
  )("%s is refused", async (_name, file) => {
    await expect(checkSources([file])).rejects.toThrow(/:1: not a registry format that is known/);
  });
});
