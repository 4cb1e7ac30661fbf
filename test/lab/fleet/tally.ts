/** What many sessions count together: handed to the benchmark's process as it stands, with the times since the last time. */
import { type Counts, Histogram } from "./histogram.ts";

const counterNames = [
  "up",
  "welcomes",
  "failedAttempts",
  "lost",
  "gaveUp",
  "requests",
  "slices",
  "results",
  "acknowledged",
  "probes",
  "peersToMeasure",
  "openSlices",
] as const;
type CounterName = (typeof counterNames)[number];

const timeNames = ["request", "acknowledge", "welcome"] as const;
/** request: from asking for work to the answer. acknowledge: from shipping a result. welcome: from the first attempt. */
type TimeName = (typeof timeNames)[number];

export interface TallySheet {
  readonly counts: Readonly<Record<CounterName, number>>;
  /** By message type. */
  readonly received: Readonly<Record<string, number>>;
  readonly sent: Readonly<Record<string, number>>;
  /** Why sessions and attempts ended, without the numbers in it. */
  readonly reasons: Readonly<Record<string, number>>;
  /** The same by what the coordinator called it: `internal-error`, `HTTP 503`, `link`. */
  readonly codes: Readonly<Record<string, number>>;
  readonly times: Readonly<Record<TimeName, Counts>>;
}

export class Tally {
  readonly counts: Record<CounterName, number>;
  readonly received: Record<string, number> = {};
  readonly sent: Record<string, number> = {};
  readonly reasons: Record<string, number> = {};
  readonly codes: Record<string, number> = {};
  readonly #times: Record<TimeName, Histogram>;

  constructor() {
    this.counts = Object.fromEntries(counterNames.map((name) => [name, 0])) as Record<CounterName, number>;
    this.#times = Object.fromEntries(timeNames.map((name) => [name, new Histogram()])) as Record<
      TimeName,
      Histogram
    >;
  }

  time(name: TimeName): Histogram {
    return this.#times[name];
  }

  countReceived(type: string): void {
    this.received[type] = (this.received[type] ?? 0) + 1;
  }

  countSent(type: string): void {
    this.sent[type] = (this.sent[type] ?? 0) + 1;
  }

  countEnd(reason: string): void {
    const words = reason.replaceAll(/[\d.]+/g, "N").slice(0, 160);
    this.reasons[words] = (this.reasons[words] ?? 0) + 1;
    const code =
      /coordinator refused \(([a-z-]+)\)/.exec(reason)?.[1] ?? /HTTP \d+/.exec(reason)?.[0] ?? "link";
    this.codes[code] = (this.codes[code] ?? 0) + 1;
  }

  /** Counts stay, times begin anew. */
  take(): TallySheet {
    const { counts, received, sent, reasons, codes } = this;
    const times = Object.fromEntries(timeNames.map((name) => [name, this.#times[name].take()])) as Record<
      TimeName,
      Counts
    >;
    return { counts, received, sent, reasons, codes, times };
  }

  /** Of another process: its counts since the last sheet that it gave. */
  add(sheet: TallySheet, before: TallySheet | null): void {
    for (const name of counterNames) this.counts[name] += sheet.counts[name] - (before?.counts[name] ?? 0);
    for (const name of ["received", "sent", "reasons", "codes"] as const) {
      for (const [key, count] of Object.entries(sheet[name]))
        this[name][key] = (this[name][key] ?? 0) + count - (before?.[name][key] ?? 0);
    }
    for (const name of timeNames) this.#times[name].merge(sheet.times[name]);
  }
}
