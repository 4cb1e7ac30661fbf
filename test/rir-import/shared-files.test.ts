/**
 * Reads every available registry file whole: its counts equal those of awk programs that are independent of the readers
 * (test/rir-import/independent), or it is refused for the expected reason. Special properties of some files follow.
 */
import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { basename, join, relative } from "node:path";
import { gunzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { SourceFileError } from "#core/errors";
import { checkSources, readState } from "#rir-import/check";
import { isLong } from "../support/long.ts";
import { sharedData } from "../support/shared-data.ts";
import { sourceFolder } from "./source-folder.ts";

const folder = sharedData("rir") ?? "";

/** Files that are not registry data or are too broken for an import, by path below the folder. */
const refusedFiles: Readonly<Record<string, RegExp>> = {
  "bgp/bart-prefixes.txt.gz": /:1: not a registry format that is known: it starts "1\.0\.0\.0\/24"/,
  "broken/delegated-apnic-extended-20240203-HTTP-ERROR.txt": /:1: a web page \("302 Found"\)/,
  "broken/delegated-ripencc-extended-20260720-TRUNCATED.txt.gz":
    /:41599: the file is cut off inside a line: the summary promises 100395 ipv4 records, the file has 41595/,
  "geo/DBIP-LICENSE": /:1: not a registry format that is known/,
  "geo/NRO_LICENSE": /:1: not a registry format that is known/,
  "geo/ROUTEVIEWS-LICENSE": /:1: not a registry format that is known/,
  "geo/ip-location-db-asn-ipv4-20260617.csv.gz": /:1: not a registry format that is known/,
  "geo/ip-location-db-asn-ipv6-20260617.csv.gz": /:1: not a registry format that is known/,
  "nro/ripe-ncc-tests/afriaprin":
    /:10: 300 of 300 records are malformed; the first: an unknown registry: "afriaprin\|/,
};

/** By far the largest, and not imported: RPSL's shape without its address classes. */
const isLibloc = (path: string) => path.includes("libloc");

const paths =
  folder === ""
    ? []
    : readdirSync(folder, { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile())
        .map((entry) => relative(folder, join(entry.parentPath, entry.name)))
        .filter((path) => isLong || !isLibloc(path))
        .sort();

const programs: Readonly<Record<string, readonly string[]>> = {
  delegated: ["addresses.awk", "delegated.awk"],
  rpsl: ["addresses.awk", "rpsl.awk"],
  "iana-xml": ["iana.awk"],
  libloc: ["paragraphs.awk"],
};

/** Records, kept, ignored and malformed ones. */
function independentCounts(file: string, format: string): readonly number[] {
  const program = programs[format]!.map((name) =>
    readFileSync(join(import.meta.dirname, "independent", name), "utf8"),
  );
  const unpack = file.endsWith(".zip") ? "unzip -p" : "gzip -dcf";
  const shell = `set -o pipefail; ${unpack} "$1" | LC_ALL=C awk "$2" /dev/stdin`;
  const options = { encoding: "utf8", maxBuffer: 1_000_000, timeout: 120_000 } as const;
  const out = execFileSync("bash", ["-c", shell, basename(file), file, program.join("\n")], options);
  return out.trim().split(" ").map(Number);
}

function textOf(file: string): string {
  const bytes = readFileSync(file);
  return (bytes[0] === 0x1f && bytes[1] === 0x8b ? gunzipSync(bytes) : bytes).toString("latin1");
}

const countOf = (text: string, pattern: RegExp) => text.match(pattern)?.length ?? 0;
const check = async (file: string) => (await checkSources([file])).files[0]!;

describe.skipIf(folder === "")("every file", () => {
  it.each(paths.filter((path) => !(path in refusedFiles)))(
    "%s has as many records, kept, ignored and malformed, as the independent count",
    async (path) => {
      const file = join(folder, path);
      const { files, broken } = await checkSources([file]);
      expect([files.length, broken]).toEqual([1, []]);
      const { format, read, kept, ignored, malformed, fileDate, registry } = files[0]!;

      const allIgnored = Object.values(ignored).reduce((a, b) => a + b, 0);
      const independent = independentCounts(file, isLibloc(path) ? "libloc" : format!);
      expect([read, kept, allIgnored, malformed]).toEqual(independent);
      if (path.startsWith("delegated/")) {
        const text = textOf(file);
        expect(ignored["autonomous system number"]).toBe(countOf(text, /^\w+\|[A-Z]*\|asn\|/gm));
        for (const status of ["available", "reserved"]) {
          const records = new RegExp(
            `^\\w+\\|[A-Z]*\\|ipv[46]\\|[^|]*\\|\\d+\\|\\d*\\|${status}\\b.*$`,
            "gm",
          );
          expect(ignored[`status ${status}`] ?? 0).toBe(countOf(text, records));
        }
        expect(fileDate).toMatch(/^20(13|19|24|26)-\d\d-\d\d$/);
      }
      if (path.startsWith("iana/")) {
        expect({ format, registry, fileDate }).toEqual({
          format: "iana-xml",
          registry: "iana",
          fileDate: "2025-10-10",
        });
        expect(ignored["status reserved"]).toBe(countOf(textOf(file), /<status>RESERVED</g));
      }
    },
  );

  it.each(Object.entries(refusedFiles))("%s is refused, and stops an import", async (path, reason) => {
    const { broken } = await checkSources([join(folder, path)]);

    expect(broken.map((fault) => `${fault.file}:${fault.line}: ${fault.reason}`)).toEqual([
      expect.stringMatching(reason),
    ]);
    if (path.startsWith("broken/"))
      await expect(readState([join(folder, path)], () => {})).rejects.toThrow(SourceFileError);
  });
});

describe.skipIf(folder === "")("delegated statistics", () => {
  it("LACNIC's file that promises more than it has is accepted with a warning", async () => {
    const report = await check(join(folder, "delegated/delegated-lacnic-20260213.txt.gz"));

    expect(report.warnings).toEqual(["the summary promises 15570 asn records, the file has 14050"]);
  });

  it("the NRO's conflict cases without a version line are read with a warning", async () => {
    const report = await check(join(folder, "nro/ripe-ncc-tests/previous"));

    expect(report).toMatchObject({
      ...{ read: 32, kept: 11, malformed: 0 },
      warnings: ["the file has no version line"],
    });
  });

  it("two copies spliced in the middle of a line: the torn record is named, and the counts give warnings", async () => {
    const report = await check(join(folder, "broken/delegated-iana-20190912.txt.gz"));

    expect(report.malformedSamples).toMatchObject([{ line: 1007, value: "|3|19990401|arin" }]);
    expect(report.malformed).toBe(1);
    expect(report.warnings).toHaveLength(3);
  });
});

describe.skipIf(folder === "")("RPSL", () => {
  it("each malformed one of the test objects is named with its line and value", async () => {
    const file = join(folder, "rpsl/ripe-whois-test-objects.rpsl.gz");
    const lines = textOf(file).split("\n");
    const report = await check(file);

    expect(report).toMatchObject({ read: 1635, malformed: 24 });
    expect(report.malformedSamples).toHaveLength(20);
    for (const { line, value } of report.malformedSamples) expect(lines[line - 1]).toContain(value);
  });

  it("the text entry of ARIN's archive is read, empty entries are skipped", async () => {
    const { files: reports } = await checkSources([join(folder, "rpsl/ripe-whois-grs/arin.test.zip")]);

    const ignored = { "object class ashandle": 1, "object class pochandle": 1 };
    expect(reports).toMatchObject([{ registry: "arin", read: 5, kept: 3, ignored }]);
    expect(reports[0]?.file).toMatch(/arin\.test\.zip!arin_db\.txt$/);
  });
});

it("a file with RPSL's syntax but none of its address classes is read to the end, with a warning", async () => {
  const sources = sourceFolder();
  const report = await check(sources.write("libloc.db", "net: 1.0.0.0/8\ncountry: AU\n\naut-num: AS1\n\n"));
  sources.remove();

  expect(report).toMatchObject({
    ...{ kept: 0, malformed: 0, ignored: { "object class net": 1, "object class aut-num": 1 } },
    warnings: ["nothing of it is kept: no networks and no organisations"],
  });
});
