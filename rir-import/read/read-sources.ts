/**
 * Reads every file with its reader into a receiver, and reports per file and on progress. The first invalid file stops
 * everything with SourceFileError.
 */
import { stat } from "node:fs/promises";
import type { Registry } from "#coordinator/place/subnets/subnet";
import { SourceFileError } from "#core/errors";
import type { IpRange } from "#core/ip/range";
import {
  isContent,
  openArinXmlReader,
  plainText,
  textOf,
  type XmlContent,
  XmlRecordReader,
} from "../formats/arin-xml.ts";
import { openDelegatedReader } from "../formats/delegated.ts";
import { isPublishedFormat } from "../formats/published.ts";
import {
  type HolderReference,
  type NetworkRecord,
  type OpenReader,
  type OrganisationRecord,
  type RecordReader,
  type RecordSink,
  registryNamed,
} from "../formats/record.ts";
import { readRegistryRange } from "../formats/registry-range.ts";
import { openRpslReader } from "../formats/rpsl.ts";
import { ValueDecoder } from "../formats/text-decoding.ts";
import { reasonToDrop } from "../tree/precedence.ts";
import { type FileReport, FileReportBuilder } from "./file-report.ts";
import { openSource, type SourcePart } from "./open-source.ts";
import type { RegistryFormat } from "./sniff.ts";

interface ReadProgress {
  readonly file: string;
  readonly bytesDone: number;
  readonly bytesTotal: number;
  readonly records: number;
}

const readers: Readonly<Record<RegistryFormat, OpenReader>> = {
  rpsl: openRpslReader,
  delegated: openDelegatedReader,
  "arin-xml": openArinXmlReader,
  "iana-xml": openIanaReader,
};

/** A file of at least `fewestToJudge` records is invalid when more than this share is malformed. */
const maxMalformedShare = 0.2;

const fewestToJudge = 100;

export async function readSources(
  files: readonly string[],
  receiver: RecordReceiver,
  onProgress: (progress: ReadProgress) => void,
): Promise<readonly FileReport[]> {
  const progress = await ProgressCounter.over(files, onProgress);
  const reports: FileReport[] = [];
  for (const file of files) {
    reports.push(...(await readFile(file, { receiver, progress })));
  }
  return reports;
}

interface Reading {
  readonly receiver: RecordReceiver;
  readonly progress: ProgressCounter;
}

async function readFile(file: string, reading: Reading): Promise<readonly FileReport[]> {
  const source = await openSource(file, (bytes) => reading.progress.took(file, bytes));
  const parts: { report: FileReportBuilder; textBytes: number; seconds: number }[] = [];
  for await (const part of source.parts) {
    const startedAt = performance.now();
    const report = new FileReportBuilder(part.file, part.format);
    if (part.remark !== undefined) report.warn(part.remark);
    const textBytes = await readPart(part, report, reading);
    judge(part.file, report);
    if (report.keptCount === 0) report.warn("nothing of it is kept: no networks and no organisations");
    parts.push({ report, textBytes, seconds: (performance.now() - startedAt) / 1000 });
  }
  const disk = { sha256: await source.sha256(), bytesOnDisk: source.bytes, modifiedAt: source.modifiedAt };
  return parts.map(({ report, textBytes, seconds }) => report.finish({ ...disk, textBytes, seconds }));
}

async function readPart(
  part: SourcePart,
  report: FileReportBuilder,
  { receiver, progress }: Reading,
): Promise<number> {
  if (isPublishedFormat(part.format))
    throw new SourceFileError(part.file, null, "a list of places among registry data: name it by itself");
  const reader = readers[part.format](part.file, sinkOf(part.file, report, receiver));
  let textBytes = 0;
  let readBefore = 0;
  for await (const chunk of part.chunks) {
    textBytes += chunk.length;
    reader.push(chunk);
    const { read } = report;
    progress.records(part.file, read - readBefore);
    readBefore = read;
  }
  reader.end();
  return textBytes;
}

export function judge(file: string, report: FileReportBuilder): void {
  const { read, malformedCount } = report;
  if (read === 0) throw new SourceFileError(file, null, "no records in it");
  if (malformedCount < fewestToJudge || malformedCount <= read * maxMalformedShare) return;
  const sample = report.firstMalformed;
  const first = sample ? `; the first: ${sample.reason}: "${sample.value}"` : "";
  const reason = `${malformedCount} of ${read} records are malformed${first}`;
  throw new SourceFileError(file, sample?.line ?? null, reason);
}

class ProgressCounter {
  readonly #report: (progress: ReadProgress) => void;
  readonly #bytesTotal: number;
  #bytesDone = 0;
  #records = 0;

  constructor(bytesTotal: number, report: (progress: ReadProgress) => void) {
    this.#bytesTotal = bytesTotal;
    this.#report = report;
  }

  static async over(
    files: readonly string[],
    report: (progress: ReadProgress) => void,
  ): Promise<ProgressCounter> {
    const sizes = await Promise.all(
      files.map(async (file) => (await stat(file).catch(() => null))?.size ?? 0),
    );
    return new ProgressCounter(
      sizes.reduce((total, size) => total + size, 0),
      report,
    );
  }

  took(file: string, bytes: number): void {
    this.#bytesDone += bytes;
    this.#emit(file);
  }

  records(file: string, count: number): void {
    if (count === 0) return;
    this.#records += count;
    this.#emit(file);
  }

  #emit(file: string): void {
    const done = { bytesDone: this.#bytesDone, bytesTotal: this.#bytesTotal, records: this.#records };
    this.#report({ file, ...done });
  }
}

// Reads IANA's XML registries of IPv4 address space and IPv6 unicast assignments. They are the top level of the tree,
// and decide which registry is responsible where no statistics do. Reserved blocks, multicast and IANA's own blocks are
// left out. A block designated to a company (legacy /8s) has the company as its holder.

export function openIanaReader(file: string, sink: RecordSink): RecordReader {
  sink.facts({ registry: "iana" });
  return new XmlRecordReader({
    file,
    rootName: "registry",
    records: ["record", "updated"],
    passed: [],
    decoder: new ValueDecoder(),
    handler: {
      record: (name, value, { line }) =>
        name === "updated" ? readUpdated(sink, value) : readRecord(sink, isContent(value) ? value : {}, line),
      passed: () => {},
      malformed: (problem) => sink.malformed(problem),
    },
  });
}

function readUpdated(sink: RecordSink, value: unknown): void {
  const fileDate =
    typeof value === "string" ? /\d{4}-\d\d-\d\d/.exec(plainText(value) ?? "")?.[0] : undefined;
  if (fileDate) sink.facts({ fileDate });
}

function readRecord(sink: RecordSink, content: XmlContent, line: number): void {
  const prefix = textOf(content, "prefix") ?? "";
  const reading = readRegistryRange(prefix);
  if ("reason" in reading) sink.malformed({ line, reason: reading.reason, value: prefix });
  else readBlock(sink, content, { line, range: reading.range });
}

function readBlock(
  sink: RecordSink,
  content: XmlContent,
  at: { readonly line: number; readonly range: IpRange },
): void {
  const status = (textOf(content, "status") ?? "").toUpperCase();
  const name = textOf(content, "designation") ?? textOf(content, "description") ?? "";
  const registry = registryOf(textOf(content, "whois"), name);
  if (status !== "ALLOCATED" && status !== "LEGACY") {
    sink.ignore(`status ${status.toLowerCase().slice(0, 20)}`);
  } else if (registry === null) {
    sink.ignore("not given to a registry");
  } else {
    const holder = holderOf(name);
    sink.record({ type: "network", source: "iana", registry, name, country: null, holder, ...at });
  }
}

/** Uses the name of the WHOIS server (`whois.ripe.net`), else the designation. Returns null for IANA's own blocks. */
function registryOf(whois: string | null, designation: string): Registry | null {
  const host = /^whois\.([a-z]+)\.(?:net|org)$/i.exec(whois ?? "")?.[1];
  const registry = host ? registryNamed(host) : registryNamed(designation.replace(/^Administered by /i, ""));
  return registry === "iana" ? null : registry;
}

function holderOf(designation: string): HolderReference | null {
  if (designation === "" || registryNamed(designation) !== null) return null;
  if (/^(Administered by|IANA|Multicast|Future use|6to4|Documentation|Reserved)/i.test(designation))
    return null;
  return { type: "name", name: designation, registry: "iana", country: null };
}

export interface RecordReceiver {
  addNetwork(record: NetworkRecord, file: string): void;
  addOrganisation(record: OrganisationRecord): void;
}

function sinkOf(file: string, report: FileReportBuilder, receiver: RecordReceiver): RecordSink {
  return {
    record: (record) => {
      if (record.type === "organisation") {
        receiver.addOrganisation(record);
        report.keep(record.registry);
        return;
      }
      const reason = reasonToDrop(record);
      if (reason !== null) {
        report.ignore(reason);
        return;
      }
      receiver.addNetwork(record, file);
      report.keep(record.registry);
    },
    ignore: (reason) => report.ignore(reason),
    malformed: (problem) => report.malformed(problem),
    warn: (text) => report.warn(text),
    facts: (facts) => report.facts(facts),
  };
}
