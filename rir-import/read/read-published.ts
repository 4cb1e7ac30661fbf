/**
 * Reads the places that networks publish, after the registries' files: the clouds' lists, the operator's geofeeds, and
 * geofeeds that registry objects name (RFC 9632), which may only describe the ranges of these objects. Among nested
 * objects the most specific one decides. Signatures (RFC 9632 section 5) are not checked: TLS to the URL that the
 * registry names is trusted.
 */

import { createHash } from "node:crypto";
import { open, stat } from "node:fs/promises";
import { basename, dirname } from "node:path";
import { constants, gunzipSync } from "node:zlib";
import type { PublishedKind } from "#coordinator/place/subnets/published-ranges";
import {
  mostPublishedRanges,
  type PublishedRanges,
  PublishedRangesBuilder,
} from "#coordinator/place/subnets/published-ranges";
import {
  columnsOf,
  compareSpecificity,
  type RangeColumns,
  sortedOrder,
} from "#coordinator/place/subnets/range-columns";
import { SourceFileError } from "#core/errors";
import { formatRange, type IpRange, rangeCovers } from "#core/ip/range";
import { plainLines } from "#core/plain-lines";
import { readCloudRanges } from "../formats/cloud-ranges.ts";
import { GeofeedReader, geofeedFileForm, geofeedFileOf } from "../formats/geofeed.ts";
import {
  isPublishedFormat,
  kindOfFormat,
  mostListBytes,
  mostListRanges,
  type PublishedFormat,
  type PublishedSink,
} from "../formats/published.ts";
import type { GeofeedReference } from "../formats/record.ts";
import { HoldingRanges } from "../tree/holding-ranges.ts";
import type { FileReport } from "./file-report.ts";
import { FileReportBuilder } from "./file-report.ts";
import { fileOf, type NamedList, openSource, type SourcePath } from "./open-source.ts";
import { judge } from "./read-sources.ts";
import { sniffFormat, sniffPacking } from "./sniff.ts";

/** Separates lists by name or first bytes. All other files belong to the registries' readers. */
export async function withoutPublished(
  files: readonly SourcePath[],
): Promise<{ readonly registryFiles: readonly string[]; readonly publishedFiles: readonly NamedList[] }> {
  const registryFiles: string[] = [];
  const publishedFiles: NamedList[] = [];
  for (const path of files) {
    const file = fileOf(path);
    const format = typeof path === "string" ? await publishedFormatOf(file) : path.format;
    if (format === null) registryFiles.push(file);
    else publishedFiles.push({ file, format });
  }
  return { registryFiles, publishedFiles };
}

const startBytes = 16_384;

async function publishedFormatOf(file: string): Promise<PublishedFormat | null> {
  if (geofeedFileForm.test(basename(file))) return "geofeed";
  try {
    if (!(await stat(file)).isFile()) return null;
    const handle = await open(file, "r");
    const { buffer, bytesRead } = await handle
      .read(Buffer.alloc(startBytes), 0, startBytes, 0)
      .finally(() => handle.close());
    const start = buffer.subarray(0, bytesRead);
    const packing = sniffPacking(start);
    if (packing === "zip") return null;
    const finishFlush = constants.Z_SYNC_FLUSH;
    const text = packing === "gzip" ? gunzipSync(start, { finishFlush, maxOutputLength: 2 ** 25 }) : start;
    const format = sniffFormat(file, plainLines(text));
    return isPublishedFormat(format) ? format : null;
  } catch {
    return null;
  }
}

interface ReadPublished {
  readonly reports: readonly FileReport[];
  readonly ranges: PublishedRanges;
}

/** Throws SourceFileError for an invalid list of the operator. An invalid geofeed of a stranger is only reported. */
export async function readPublished(
  files: readonly NamedList[],
  references: readonly GeofeedReference[],
): Promise<ReadPublished> {
  const builder = new PublishedRangesBuilder();
  const reports: FileReport[] = [];
  const isNamed = ({ file }: NamedList) => geofeedFileForm.test(basename(file));
  const named = files.filter(isNamed).map(({ file }) => file);
  const sources = new Map<string, string>();
  for (const list of files) if (!isNamed(list)) reports.push(await readListFile(list, builder, sources));
  if (named.length > 0) reports.push(await readGeofeeds(named, references, builder));
  return { reports, ranges: builder.build() };
}

class ListRanges {
  readonly #places = new Map<
    string,
    { readonly range: IpRange; readonly line: number; place: string | null }
  >();
  readonly #contradicted = new Set<string>();
  readonly #report: Pick<FileReportBuilder, "ignore" | "malformed">;

  constructor(report: Pick<FileReportBuilder, "ignore" | "malformed">) {
    this.#report = report;
  }

  add(range: IpRange, place: string | null, line: number): void {
    const key = `${range.first}-${range.last}`;
    const known = this.#places.get(key);
    if (known === undefined && this.#places.size >= mostListRanges) {
      this.#report.ignore(`ranges behind the first ${mostListRanges.toLocaleString("en")} of a list`);
    } else if (known === undefined) this.#places.set(key, { range, place, line });
    else if (known.place === place || this.#contradicted.has(key))
      this.#report.ignore("the same range once more");
    else {
      this.#contradicted.add(key);
      const value = `${formatRange(range)}: ${known.place ?? "no place"}, ${place ?? "no place"}`;
      this.#report.malformed({ line, reason: "a range at two places: it counts as at none", value });
      known.place = null;
    }
  }

  values() {
    return this.#places.values();
  }
}

async function readListFile(
  { file, format }: NamedList,
  builder: PublishedRangesBuilder,
  sources: Map<string, string>,
): Promise<FileReport> {
  const startedAt = performance.now();
  const { source, bytes } = await openList({ file, format });
  const start = bytes.subarray(0, 4096).toString("latin1").trimStart();
  if (start.startsWith("<")) throw new SourceFileError(file, 1, "a web page, not a list of places");
  const report = new FileReportBuilder(file, format);
  const ranges = new ListRanges(report);
  const kind = kindOfFormat(format);
  let facts: { listDate?: string; version?: string } = {};
  const sink: PublishedSink = {
    range: ({ range, place, line }) => ranges.add(range, place, line),
    ignore: (reason) => report.ignore(reason),
    malformed: (problem) => report.malformed(problem),
    facts: (stated) => {
      facts = { ...facts, ...stated };
    },
  };
  readList(file, format, bytes, sink);
  const listDate = facts.listDate ?? source.modifiedAt.toISOString().slice(0, 10);
  report.facts({ fileDate: listDate });
  const name = nameOfList(file, kind, sources);
  const other = sources.get(name);
  if (other !== undefined) throw new SourceFileError(file, null, `a second list of ${name}: ${other} is one`);
  sources.set(name, file);
  const list = builder.addList({
    ...{ source: name, kind, isNamedByObjects: false },
    ...{ listDate, version: facts.version ?? null },
  });
  const left = mostPublishedRanges - builder.count;
  let taken = 0;
  for (const { range, place } of ranges.values()) {
    if (taken++ >= left) report.ignore(tooManyReason);
    else {
      builder.add(list, range, { place, within: null });
      report.keep(null);
    }
  }
  // A geofeed that contains only comments is valid: it withdraws its earlier places.
  if (format !== "geofeed" || report.read > 0) judge(file, report);
  return report.finish({
    ...{ sha256: await source.sha256(), bytesOnDisk: source.bytes, textBytes: bytes.length },
    ...{ modifiedAt: source.modifiedAt, seconds: (performance.now() - startedAt) / 1000 },
  });
}

/** Keeps the names of two geofeeds distinct when their files differ only in the ending. */
function nameOfList(file: string, kind: PublishedKind, others: ReadonlyMap<string, string>): string {
  if (kind !== "geofeed") return kind;
  const name = `geofeed ${basename(file).replace(/\.[a-z]{1,4}$/i, "")}`;
  return others.has(name) ? `geofeed ${basename(file)}` : name;
}

const tooManyReason = `ranges behind the first ${mostPublishedRanges.toLocaleString("en")} of all lists`;

async function openList({ file, format }: NamedList) {
  const source = await openSource(file, () => {}, format);
  let bytes = Buffer.alloc(0);
  for await (const { chunks } of source.parts) bytes = await wholeOf(chunks, file);
  return { source, bytes };
}

async function wholeOf(chunks: AsyncIterable<Buffer>, file: string): Promise<Buffer<ArrayBuffer>> {
  const pieces: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of chunks) {
    bytes += chunk.length;
    if (bytes > mostListBytes) throw new SourceFileError(file, null, tooLargeReason);
    pieces.push(Buffer.from(chunk));
  }
  return Buffer.concat(pieces);
}

const tooLargeReason = `larger than the ${mostListBytes} bytes that are taken of a list of places`;

function readList(file: string, format: PublishedFormat, bytes: Buffer, sink: PublishedSink): void {
  if (format === "geofeed") {
    const reader = new GeofeedReader(sink);
    reader.push(plainLines(bytes));
    reader.end();
  } else readCloudRanges(file, format, bytes.toString("utf8"), sink);
}

/** Checks that a fetched file is a list of that format, as an import reads it. Throws SourceFileError otherwise. */
export async function checkPublished(file: string, format: PublishedFormat): Promise<void> {
  const report = await readListFile({ file, format }, new PublishedRangesBuilder(), new Map());
  const [fault] = report.malformedSamples;
  if (report.kept > 0 || (fault === undefined && format === "geofeed")) return;
  const { line, reason, value } = fault ?? { line: 0, reason: "it holds no range", value: "" };
  throw new SourceFileError(
    file,
    line || null,
    `${reason}${value === "" ? "" : `: "${value.slice(0, 80)}"`}`,
  );
}

async function readGeofeeds(
  files: readonly string[],
  references: readonly GeofeedReference[],
  builder: PublishedRangesBuilder,
): Promise<FileReport> {
  const startedAt = performance.now();
  const report = new FileReportBuilder(dirname(files[0] as string), "geofeeds");
  const claimsOf = (family: 4 | 6) =>
    new GeofeedClaims(references.filter(({ range }) => range.family === family));
  const claims = { 4: claimsOf(4), 6: claimsOf(6) };
  const urls = new Map(references.map(({ url }) => [geofeedFileOf(url), url]));
  const hash = createHash("sha256");
  const sums = { bytes: 0, missing: new Set(urls.keys()) };
  let newest = new Date(0);
  const inOrder = [...files].sort((a, b) => (basename(a) < basename(b) ? -1 : 1));
  for (const file of inOrder) {
    const url = urls.get(basename(file));
    sums.missing.delete(basename(file));
    if (url === undefined) {
      report.ignore("a geofeed that no registry object names any more");
      continue;
    }
    const { size, mtime } = await stat(file);
    const opened = await openList({ file, format: "geofeed" }).catch((error: unknown) => {
      if (error instanceof SourceFileError) return error;
      throw error;
    });
    if (opened instanceof SourceFileError) {
      report.malformed({ line: 0, reason: opened.reason, value: `${size} bytes` }, url);
      continue;
    }
    const { bytes } = opened;
    sums.bytes += bytes.length;
    hash.update(`${url}\n`).update(createHash("sha256").update(bytes).digest());
    if (mtime > newest) newest = mtime;
    addGeofeed({ url, bytes, listDate: mtime.toISOString().slice(0, 10) }, { report, claims, builder });
  }
  if (sums.missing.size > 0)
    report.warn(`${sums.missing.size} geofeeds that registry objects name are not at hand`);
  report.facts({ fileDate: newest.toISOString().slice(0, 10) });
  return report.finish({
    ...{ sha256: hash.digest("hex"), bytesOnDisk: sums.bytes, textBytes: sums.bytes },
    ...{ modifiedAt: newest, seconds: (performance.now() - startedAt) / 1000 },
  });
}

function addGeofeed(
  feed: { readonly url: string; readonly bytes: Buffer; readonly listDate: string },
  to: {
    readonly report: FileReportBuilder;
    readonly claims: Readonly<Record<4 | 6, GeofeedClaims>>;
    readonly builder: PublishedRangesBuilder;
  },
): void {
  const { url, bytes, listDate } = feed;
  const { report, claims, builder } = to;
  const named: Pick<FileReportBuilder, "ignore" | "malformed"> = {
    ignore: (reason) => report.ignore(reason),
    malformed: (problem) => report.malformed(problem, url),
  };
  const ranges = new ListRanges(named);
  readList(url, "geofeed", bytes, {
    ...named,
    facts: () => {},
    range: ({ range, place, line }) => ranges.add(range, place, line),
  });
  const list = builder.addList({
    ...{ source: `geofeed ${url}`, kind: "geofeed", isNamedByObjects: true },
    ...{ listDate, version: null },
  });
  for (const { range, place, line } of ranges.values()) {
    const claim = claims[range.family].of(range, url);
    if ("reason" in claim) named.malformed({ line, reason: claim.reason, value: formatRange(range) });
    else if (builder.count >= mostPublishedRanges) report.ignore(tooManyReason);
    else {
      builder.add(list, range, { place, within: formatRange(claim.within) });
      report.keep(null);
    }
  }
}

/** Decides which geofeed may describe which range of a family. */
class GeofeedClaims {
  readonly #references: readonly GeofeedReference[];
  readonly #columns: RangeColumns;
  readonly #holding: HoldingRanges;

  constructor(references: readonly GeofeedReference[]) {
    const order = sortedOrder(columnsOf(references.map(({ range }) => range)));
    this.#references = Array.from(order, (index) => references[index] as GeofeedReference);
    this.#columns = columnsOf(this.#references.map(({ range }) => range));
    this.#holding = new HoldingRanges(this.#columns);
  }

  of(range: IpRange, url: string): { readonly within: IpRange } | { readonly reason: string } {
    const over = this.#references.length === 0 ? [] : this.#holding.holdersOf(range);
    const [most] = [...over].sort((a, b) => compareSpecificity(this.#columns, a, b));
    const isOurs = (index: number) => this.#references[index]?.url === url;
    if (most === undefined || !over.some(isOurs)) {
      return { reason: "outside every range whose registry object names this geofeed" };
    }
    const within = (this.#references[most] as GeofeedReference).range;
    // Two registries may have an object for the same range, each naming a geofeed.
    const named = over.find((index) => {
      const reference = this.#references[index] as GeofeedReference;
      return reference.url === url && rangeCovers(within, reference.range);
    });
    if (named !== undefined) return { within };
    return { reason: `the object of ${formatRange(within)} names another geofeed` };
  }
}
