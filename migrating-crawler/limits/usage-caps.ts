/**
 * Caps pages per day, bytes per day and bytes per month. Bytes are those that the crawler's connections carried (wire-meter).
 * They are settled several times a second, and those of a body as they are read.
 *
 *   used   0 ─────────────────────── 98.8 % ─────── 99.4 % ─────── 100 %
 *          everything continues        no fetching,   no results     the link is closed, too,
 *                                      no probes      are sent       until the day or month ends
 *
 * The steps leave room for exchanges in progress when the first step is reached, and for the link's own few bytes.
 */

import { z } from "zod";
import { LocalTime } from "../core/local-time.ts";
import type { CrawlerLimits } from "../settings/limits-config.ts";
import { bytesInWords, type LimitUsage, limitUsage } from "./limit-usage.ts";
import { KeptFile, type KeptSettings } from "./state-file.ts";

type Caps = Pick<CrawlerLimits, "pagesPerDay" | "bytesPerDay" | "bytesPerMonth" | "timeZone">;

interface UsageCapsSettings {
  readonly limits: Caps;
  readonly kept: KeptSettings;
  readonly now: () => Date;
}

/** The fraction of a cap's bytes that each purpose may use. */
const parts = { fetch: 0.988, ship: 0.994, link: 1 } as const;

type BytesFor = keyof typeof parts;

/** The reserve written to disk in advance, as a fraction of the smallest cap. A kill costs at most this much. */
const stepPart = 1 / 200;

const mostStepBytes = 32 * 1024 * 1024;

export class UsageCaps {
  #limits: Caps;
  #time: LocalTime;
  readonly #now: () => Date;
  readonly #file: KeptFile;
  #kept: UsageLedger;
  #written: DayUse = noUse;
  /** Bytes expected by requests in progress, because a killed process never counts what the kernel received for it. */
  #expectedBytes = 0;

  constructor({ limits, kept, now }: UsageCapsSettings) {
    this.#limits = limits;
    this.#time = new LocalTime(limits.timeZone);
    this.#now = now;
    this.#file = new KeptFile({ ...kept, ...keptFile });
    this.#kept = this.#file.read(ledgerFrom) ?? emptyLedger;
  }

  apply(limits: Caps): void {
    if (limits.timeZone !== this.#limits.timeZone) this.#time = new LocalTime(limits.timeZone);
    this.#limits = limits;
  }

  count(pages: number, bytes: number): void {
    this.#kept = withUse(this.#ledger(), pages, bytes);
    this.#writeAhead();
  }

  /** Announces bytes. A negative number withdraws them after they were counted or did not come. */
  expect(bytes: number): void {
    this.#ledger();
    this.#expectedBytes += bytes;
    if (bytes > 0) this.#writeAhead();
  }

  leftBytes(purpose: BytesFor): number {
    const ledger = this.#ledger();
    const { bytesPerDay, bytesPerMonth } = this.#limits;
    const part = parts[purpose];
    const left = bytesPerDay * part - ledger.today.bytes;
    return bytesPerMonth === null ? left : Math.min(left, bytesPerMonth * part - bytesOfMonth(ledger));
  }

  hasPages(): boolean {
    return this.leftPages() > 0;
  }

  leftPages(): number {
    return Math.max(0, this.#limits.pagesPerDay - this.#ledger().today.pages);
  }

  usage(): LimitUsage[] {
    const ledger = this.#ledger();
    const now = this.#now();
    const { pagesPerDay, bytesPerDay, bytesPerMonth } = this.#limits;
    const { pages, bytes } = ledger.today;
    const dayEnd = this.#time.dayEnd(now);
    const monthEnd = this.#time.monthEnd(now);
    const monthBytes = bytesOfMonth(ledger);
    return [
      limitUsage("pagesPerDay", pages >= pagesPerDay ? `the day's ${pagesPerDay} pages are used up` : "", {
        ...{ unit: "pages", used: pages, cap: pagesPerDay, resetsAt: dayEnd },
      }),
      limitUsage("bytesPerDay", spentWords(bytes, bytesPerDay, "day"), {
        ...{ unit: "bytes", used: bytes, cap: bytesPerDay, resetsAt: dayEnd },
      }),
      limitUsage(
        "bytesPerMonth",
        bytesPerMonth === null ? "" : spentWords(monthBytes, bytesPerMonth, "month"),
        {
          ...{ unit: "bytes", used: monthBytes, cap: bytesPerMonth, resetsAt: monthEnd },
        },
      ),
    ];
  }

  spent(): string {
    if (this.hasPages() && this.leftBytes("fetch") > 0) return "";
    return this.usage().find(({ holdingBack }) => holdingBack !== "")?.holdingBack ?? "";
  }

  close(): void {
    const { today, others } = this.#kept;
    if (today.day !== "") this.#file.writeNow({ ...today, others });
  }

  #ledger(): UsageLedger {
    this.#kept = onDay(this.#kept, this.#time.at(this.#now()).day);
    return this.#kept;
  }

  #writeAhead(): void {
    const { today, others } = this.#kept;
    const soonBytes = today.bytes + this.#expectedBytes;
    const { day, pages, bytes } = this.#written;
    if (day === today.day && today.pages <= pages && soonBytes <= bytes) return;
    const { pagesPerDay, bytesPerDay, bytesPerMonth } = this.#limits;
    const least = Math.min(bytesPerDay, bytesPerMonth ?? Number.POSITIVE_INFINITY) * stepPart;
    const stepBytes = Math.min(mostStepBytes, Math.max(1024, Math.floor(least)));
    const aheadPages = today.pages + Math.floor(pagesPerDay * stepPart);
    this.#written = { ...today, pages: aheadPages, bytes: Math.ceil(soonBytes) + stepBytes };
    this.#file.writeNow({ ...this.#written, others });
  }
}

function spentWords(used: number, cap: number, time: "day" | "month"): string {
  return used >= cap * parts.fetch ? `the ${time}'s ${bytesInWords(cap)} are used up` : "";
}

// Stores usage on disk one step ahead, so that the file never shows less than was used. After a kill, the next process counts
// slightly too much and never too little. An orderly stop saves the exact count.

const count = z.int().min(0);

/** Files of earlier versions have only the first three fields. */
const keptDay = z.object({
  day: z.string().max(10),
  pages: count,
  bytes: count,
  bytesBefore: count.default(0),
  /** After the clock went back: the later day whose use this day started with. */
  wentBackFrom: z.string().max(10).nullable().default(null),
});

type DayUse = Readonly<z.infer<typeof keptDay>>;

const kept = keptDay.extend({ others: z.array(keptDay).max(10).default([]) });

const keptFile = { name: "day-count.json", maxBytes: 8192, everyMs: 2000 };

function ledgerFrom(json: unknown): UsageLedger | null {
  const read = kept.safeParse(json);
  if (!read.success) return null;
  const { others, ...today } = read.data;
  return { today, others };
}

/**
 * Tracks use by day, so that daily and monthly limits hold whatever the clock does. A clock that returns to a known day
 * continues its entry. If it returns to an unknown day, it was wrong: that day starts with the later day's use, so that
 * setting a clock back gains nothing, and the later day adopts what was added when the clock reaches it again. Pure functions.
 */

export interface UsageLedger {
  readonly today: DayUse;
  /** Other days to which the clock may return, latest used first. */
  readonly others: readonly DayUse[];
}

const mostOthers = 4;

const noUse: DayUse = { day: "", pages: 0, bytes: 0, bytesBefore: 0, wentBackFrom: null };
export const emptyLedger: UsageLedger = { today: noUse, others: [] };

export function onDay(ledger: UsageLedger, day: string): UsageLedger {
  const { today } = ledger;
  if (today.day === day) return ledger;
  const others = today.day === "" ? ledger.others : [today, ...ledger.others];
  return {
    today: entryOf(day, today, ledger.others.find((other) => other.day === day) ?? null),
    others: others.filter((other) => other.day !== day).slice(0, mostOthers),
  };
}

export function withUse(ledger: UsageLedger, pages: number, bytes: number): UsageLedger {
  const { today } = ledger;
  return {
    ...ledger,
    today: { ...today, pages: Math.max(0, today.pages + pages), bytes: today.bytes + bytes },
  };
}

export const bytesOfMonth = ({ today }: UsageLedger) => today.bytesBefore + today.bytes;

function entryOf(day: string, last: DayUse, known: DayUse | null): DayUse {
  if (known !== null) return comeBack(known, last);
  if (last.day > day) return { ...last, day, wentBackFrom: last.day };
  const isSameMonth = last.day.slice(0, 7) === day.slice(0, 7);
  return { ...noUse, day, bytesBefore: isSameMonth ? last.bytesBefore + last.bytes : 0 };
}

function comeBack(known: DayUse, last: DayUse): DayUse {
  if (last.wentBackFrom === known.day) {
    const { pages, bytes, bytesBefore } = last;
    return { ...known, pages, bytes, bytesBefore: Math.max(known.bytesBefore, bytesBefore) };
  }
  const follows = last.day < known.day && last.day.slice(0, 7) === known.day.slice(0, 7);
  return follows
    ? { ...known, bytesBefore: Math.max(known.bytesBefore, last.bytesBefore + last.bytes) }
    : known;
}
