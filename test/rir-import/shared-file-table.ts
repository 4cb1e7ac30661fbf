/** Every file of the real registry data: its results, or why it must be refused. */
import { readdirSync } from "node:fs";
import { join, relative } from "node:path";
import { checkSources } from "#rir-import/check";
import type { FileReport } from "#rir-import/read/file-report";
import type { RegistryFormat } from "#rir-import/read/sniff";
import { independentCount, type RecordCounts } from "./independent/independent-count.ts";

/** Files that are not registry data or are too broken for an import, by path below the folder. */
export const refusedFiles: Readonly<Record<string, RegExp>> = {
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

export function registryFilesIn(folder: string): readonly string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)))
    .sort();
}

export type FileRow =
  | { readonly type: "refused"; readonly reason: string }
  | {
      readonly type: "read";
      readonly report: FileReport;
      readonly counts: RecordCounts;
      readonly independent: RecordCounts;
    };

/** Reads and independently counts one file. */
export async function readRow(folder: string, path: string): Promise<FileRow> {
  const file = join(folder, path);
  const reports = await reportsOf(file);
  if (typeof reports === "string") return { type: "refused", reason: reports };
  const [report] = reports;
  if (report === undefined || reports.length > 1) throw new Error(`${path}: ${reports.length} parts`);
  const format = path.includes("libloc") ? "libloc" : (report.format as RegistryFormat);
  if (format === "arin-xml") throw new Error(`${path}: ARIN's XML has no independent count yet`);
  return { type: "read", report, counts: countsOf(report), independent: independentCount(file, format) };
}

async function reportsOf(file: string): Promise<readonly FileReport[] | string> {
  const { files, broken } = await checkSources([file]);
  const [fault] = broken;
  return fault === undefined ? files : `${fault.file}:${fault.line}: ${fault.reason}`;
}

function countsOf({ read, kept, ignored, malformed }: FileReport): RecordCounts {
  return { records: read, kept, ignored: Object.values(ignored).reduce((a, b) => a + b, 0), malformed };
}
