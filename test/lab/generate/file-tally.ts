/** Counts, while a file is written, what an importer must report of it (read/file-report.ts). */
import type { Registry } from "#coordinator/subnets/subnet";
import type { SourceFormat } from "#rir-import/read/sniff";

export interface FileAccount {
  /** Its name within the folder. */
  readonly file: string;
  readonly format: SourceFormat;
  readonly registry: Registry;
  /** ISO date that the file states, or null. */
  readonly fileDate: string | null;
  /** Sound records written, by kind: `inetnum`, `net`, `ipv4`, `record` … */
  readonly written: Readonly<Record<string, number>>;
  /** Malformed ones, by the kind they would be. */
  readonly faulty: Readonly<Record<string, number>>;
  /** What the importer must count; `read = kept + ignored + malformed`. */
  readonly read: number;
  readonly kept: number;
  readonly ignored: Readonly<Record<string, number>>;
  readonly malformed: number;
  /** One for a file of which nothing is kept. */
  readonly warnings: number;
  /** Unpacked. */
  readonly textBytes: number;
  readonly bytesOnDisk: number;
}

export class FileTally {
  readonly #written = new Map<string, number>();
  readonly #faulty = new Map<string, number>();
  readonly #ignored = new Map<string, number>();
  #kept = 0;

  /** A record of this kind, of which the importer keeps so many (a net has one network or two). */
  keep(kind: string, records = 1): void {
    countUp(this.#written, kind, 1);
    this.#kept += records;
  }

  ignore(kind: string, reason: string): void {
    countUp(this.#written, kind, 1);
    countUp(this.#ignored, reason, 1);
  }

  malformed(kind: string): void {
    countUp(this.#faulty, kind, 1);
  }

  account(
    facts: Pick<FileAccount, "file" | "format" | "registry" | "fileDate" | "textBytes" | "bytesOnDisk">,
  ): FileAccount {
    const malformed = sumOf(this.#faulty);
    return {
      ...facts,
      written: Object.fromEntries(this.#written),
      faulty: Object.fromEntries(this.#faulty),
      read: this.#kept + sumOf(this.#ignored) + malformed,
      kept: this.#kept,
      ignored: Object.fromEntries(this.#ignored),
      malformed,
      warnings: this.#kept === 0 ? 1 : 0,
    };
  }
}

function countUp(counts: Map<string, number>, key: string, by: number): void {
  counts.set(key, (counts.get(key) ?? 0) + by);
}

function sumOf(counts: ReadonlyMap<string, number>): number {
  let sum = 0;
  for (const count of counts.values()) sum += count;
  return sum;
}
