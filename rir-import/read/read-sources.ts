/**
 * Reads every file through its reader into a receiver, with a report per file and progress on the way. The
 * first file that is not what it claims to be stops everything with SourceFileError.
 */

import { stat } from "node:fs/promises";
import { SourceFileError } from "#core/errors";
import { openArinXmlReader } from "../formats/arin-xml.ts";
import { openDelegatedReader } from "../formats/delegated.ts";
import { openIanaReader } from "../formats/iana.ts";
import type { NetworkRecord, OpenReader, OrganisationRecord, RecordSink } from "../formats/record.ts";
import { openRpslReader } from "../formats/rpsl.ts";
import { reasonToDrop } from "../tree/precedence.ts";
import { type FileReport, FileReportBuilder } from "./file-report.ts";
import { openSource, type SourcePart } from "./open-source.ts";
import type { SourceFormat } from "./sniff.ts";

export interface RecordReceiver {
  addNetwork(record: NetworkRecord, file: string): void;
  addOrganisation(record: OrganisationRecord): void;
}

export interface ReadProgress {
  readonly file: string;
  readonly bytesDone: number;
  readonly bytesTotal: number;
  /** Records read so far, of all files. */
  readonly records: number;
}

const readers: Readonly<Record<SourceFormat, OpenReader>> = {
  rpsl: openRpslReader,
  delegated: openDelegatedReader,
  "arin-xml": openArinXmlReader,
  "iana-xml": openIanaReader,
};

/** Past this share of malformed records, of at least this many, a file is not what it claims to be. */
const maxMalformedShare = 0.2;
const fewestToJudge = 100;

export async function readSources(
  files: readonly string[],
  receiver: RecordReceiver,
  onProgress: (progress: ReadProgress) => void,
  signal: AbortSignal = new AbortController().signal,
): Promise<readonly FileReport[]> {
  const progress = await ProgressCounter.over(files, onProgress);
  const reports: FileReport[] = [];
  for (const file of files) {
    reports.push(...(await readFile(file, { receiver, progress, signal })));
  }
  return reports;
}

interface Reading {
  readonly receiver: RecordReceiver;
  readonly progress: ProgressCounter;
  /** Ends the reading with its reason. */
  readonly signal: AbortSignal;
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
    if (report.keptCount === 0)
      report.warn("nothing of it is kept: no networks and no organisations for the tree");
    parts.push({ report, textBytes, seconds: (performance.now() - startedAt) / 1000 });
  }
  const disk = { sha256: await source.sha256(), bytesOnDisk: source.bytes, modifiedAt: source.modifiedAt };
  return parts.map(({ report, textBytes, seconds }) => report.finish({ ...disk, textBytes, seconds }));
}

async function readPart(
  part: SourcePart,
  report: FileReportBuilder,
  { receiver, progress, signal }: Reading,
): Promise<number> {
  const reader = readers[part.format](part.file, sinkOf(part.file, report, receiver));
  let textBytes = 0;
  let readBefore = 0;
  for await (const chunk of part.chunks) {
    signal.throwIfAborted();
    textBytes += chunk.length;
    reader.push(chunk);
    const { read } = report;
    progress.records(part.file, read - readBefore);
    readBefore = read;
  }
  reader.end();
  return textBytes;
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

/** Throws when so much of a file is malformed that it cannot be what it looked like. */
function judge(file: string, report: FileReportBuilder): void {
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
