/**
 * The report of one file: records read, kept, ignored (by reason) and malformed. Counts are exact, while lists are
 * limited. `read = kept + ignored + malformed`, in records of the file's format.
 */
import type { Registry } from "#coordinator/place/subnets/subnet";
import type { FileFacts, Malformed } from "../formats/record.ts";
import type { EncodingCounts } from "../formats/text-decoding.ts";
import type { SourceFormat } from "./sniff.ts";

export interface FileReport {
  readonly file: string;
  readonly format: SourceFormat;
  readonly registry: Registry | null;
  /** The date of the data as the file gives it, else the file's modification date. */
  readonly fileDate: string | null;
  readonly sha256: string;
  readonly bytesOnDisk: number;
  readonly textBytes: number;
  readonly read: number;
  readonly kept: number;
  readonly ignored: Readonly<Record<string, number>>;
  readonly malformed: number;
  /** The first malformed records, at most `maxSamples`. */
  readonly malformedSamples: readonly (Malformed & { readonly file: string })[];
  readonly warnings: readonly string[];
  /** The encodings of the values used. Null when all were plain ASCII. */
  readonly encoding: EncodingCounts | null;
  readonly seconds: number;
}

const maxSamples = 20;
const maxReasons = 40;
const maxWarnings = 20;
const maxValueLength = 120;

export class FileReportBuilder {
  readonly #file: string;
  readonly #format: SourceFormat;
  readonly #ignored = new Map<string, number>();
  readonly #samples: (Malformed & { readonly file: string })[] = [];
  readonly #warnings: string[] = [];
  readonly #registriesSeen = new Set<Registry>();
  #lastRegistry: Registry | null = null;
  #kept = 0;
  #malformed = 0;
  #facts: FileFacts = {};

  constructor(file: string, format: SourceFormat) {
    this.#file = file;
    this.#format = format;
  }

  get read(): number {
    let ignored = 0;
    for (const count of this.#ignored.values()) ignored += count;
    return this.#kept + ignored + this.#malformed;
  }

  get keptCount(): number {
    return this.#kept;
  }

  get malformedCount(): number {
    return this.#malformed;
  }

  get firstMalformed(): Malformed | null {
    return this.#samples[0] ?? null;
  }

  keep(registry: Registry | null): void {
    this.#kept++;
    if (registry === this.#lastRegistry) return;
    this.#lastRegistry = registry;
    if (registry !== null) this.#registriesSeen.add(registry);
  }

  /** Counts reasons beyond the limit together, since a hostile file may invent one per record. */
  ignore(reason: string): void {
    const isTold = this.#ignored.has(reason) || this.#ignored.size < maxReasons;
    const told = isTold ? reason : "other";
    this.#ignored.set(told, (this.#ignored.get(told) ?? 0) + 1);
  }

  /** Pass `file` when several files share one report. */
  malformed(problem: Malformed, file = this.#file): void {
    this.#malformed++;
    if (this.#samples.length >= maxSamples) return;
    const { line, reason } = problem;
    this.#samples.push({ file, line, reason, value: shortened(problem.value) });
  }

  warn(text: string): void {
    if (this.#warnings.length < maxWarnings) this.#warnings.push(text);
  }

  facts(facts: FileFacts): void {
    this.#facts = { ...this.#facts, ...facts };
  }

  finish(disk: {
    readonly sha256: string;
    readonly bytesOnDisk: number;
    readonly textBytes: number;
    readonly modifiedAt: Date;
    readonly seconds: number;
  }): FileReport {
    const [onlyRegistry] = this.#registriesSeen.size === 1 ? this.#registriesSeen : [];
    return {
      file: this.#file,
      format: this.#format,
      registry: this.#facts.registry ?? onlyRegistry ?? null,
      fileDate: this.#facts.fileDate ?? disk.modifiedAt.toISOString().slice(0, 10),
      sha256: disk.sha256,
      bytesOnDisk: disk.bytesOnDisk,
      textBytes: disk.textBytes,
      read: this.read,
      kept: this.#kept,
      ignored: Object.fromEntries(this.#ignored),
      malformed: this.#malformed,
      malformedSamples: this.#samples,
      warnings: this.#warnings,
      encoding: this.#facts.encoding ?? null,
      seconds: disk.seconds,
    };
  }
}

/** Removes control characters, and half a surrogate pair at the end, which Postgres' jsonb rejects. */
function shortened(value: string): string {
  return value
    .slice(0, maxValueLength)
    .replace(/\p{Cc}+/gu, " ")
    .replace(/[\ud800-\udbff]$/, "");
}
