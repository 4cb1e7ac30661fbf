/**
 * The usage ledger on disk. Use is written down ahead, a step at a time: what lies on disk is never less than what
 * was used, so that a killed process has used a little less than its successor believes, and never more. An
 * orderly end writes the exact count.
 */
import { z } from "zod";
import { KeptFile, type KeptSettings } from "./kept-file.ts";
import { type DayUse, emptyLedger, noUse, onDay, type UsageLedger, withUse } from "./usage-ledger.ts";

const count = z.int().min(0);
/** Files of earlier versions have the first three alone. */
const keptDay = z.object({
  day: z.string().max(10),
  pages: count,
  bytes: count,
  bytesBefore: count.default(0),
  wentBackFrom: z.string().max(10).nullable().default(null),
}) satisfies z.ZodType<DayUse>;
const kept = keptDay.extend({ others: z.array(keptDay).max(10).default([]) });

const keptFile = { name: "day-count.json", maxBytes: 8192, everyMs: 2000 };

/** How much is written down ahead. */
export interface UsageStep {
  readonly pages: number;
  readonly bytes: number;
}

export class KeptUsage {
  readonly #file: KeptFile;
  #ledger: UsageLedger;
  /** What is on disk of today is this much. */
  #written: DayUse = noUse;
  #step: UsageStep = { pages: 1, bytes: 4096 };
  /** Of requests under way: a killed process never counts what the kernel had received for it. */
  #expectedBytes = 0;

  constructor(settings: KeptSettings) {
    this.#file = new KeptFile({ ...settings, ...keptFile });
    this.#ledger = this.#file.read(ledgerFrom) ?? emptyLedger;
  }

  get ledger(): UsageLedger {
    return this.#ledger;
  }

  set step(step: UsageStep) {
    this.#step = step;
  }

  turnTo(day: string): void {
    this.#ledger = onDay(this.#ledger, day);
  }

  add(pages: number, bytes: number): void {
    this.#ledger = withUse(this.#ledger, pages, bytes);
    this.#writeAhead();
  }

  /** So many bytes are about to come; negative: they have been counted, or do not come. */
  expect(bytes: number): void {
    this.#expectedBytes += bytes;
    if (bytes > 0) this.#writeAhead();
  }

  #writeAhead(): void {
    const { today } = this.#ledger;
    const soonBytes = today.bytes + this.#expectedBytes;
    const { day, pages: writtenPages, bytes: writtenBytes } = this.#written;
    if (day === today.day && today.pages <= writtenPages && soonBytes <= writtenBytes) return;
    this.#written = {
      ...today,
      pages: today.pages + this.#step.pages,
      bytes: Math.ceil(soonBytes) + this.#step.bytes,
    };
    this.#file.writeNow({ ...this.#written, others: this.#ledger.others });
  }

  /** Writes what was really used. */
  close(): void {
    const { today, others } = this.#ledger;
    if (today.day !== "") this.#file.writeNow({ ...today, others });
  }
}

function ledgerFrom(json: unknown): UsageLedger | null {
  const read = kept.safeParse(json);
  if (!read.success) return null;
  const { others, ...today } = read.data;
  return { today, others };
}
