/** Figures of the steps, and the tables that are made of them: a column for each size of the fleet. */
import { formatTable } from "#ops/cli/output";
import type { Standing } from "./box.ts";
import { Histogram } from "./histogram.ts";
import type { TallySheet } from "./tally.ts";

export interface Figure {
  readonly step: string;
  readonly name: string;
  readonly unit: string;
  /** Null: it was not reached, or could not be measured. */
  readonly value: number | null;
}

/** What was measured with a fleet of so many. */
export interface Run {
  readonly crawlers: number;
  readonly figures: readonly Figure[];
  /** What does not fit a table: why sessions ended, what the coordinator logged. */
  readonly notes: readonly string[];
}

export class FigureList {
  readonly figures: Figure[] = [];
  readonly notes: string[] = [];

  add(step: string, name: string, value: number | null, unit = ""): void {
    this.figures.push({ step, name, unit, value });
  }

  times(step: string, name: string, times: Histogram): void {
    for (const [words, share] of [
      ["median", 0.5],
      ["99 %", 0.99],
      ["longest", 1],
    ] as const)
      this.add(step, `${name}, ${words}`, times.at(share), "ms");
  }

  note(step: string, words: string): void {
    this.notes.push(`${step}: ${words}`);
  }
}

/** From one standing to a later one. */
export class Change {
  readonly seconds: number;
  readonly #before: Standing;
  readonly #after: Standing;

  constructor(before: Standing, after: Standing) {
    this.seconds = (after.atMs - before.atMs) / 1000;
    this.#before = before;
    this.#after = after;
  }

  of(name: Exclude<keyof Standing, "sheet">): number {
    return this.#after[name] - this.#before[name];
  }

  count(name: keyof TallySheet["counts"]): number {
    return this.#after.sheet.counts[name] - this.#before.sheet.counts[name];
  }

  /** By message type, reason or code, the most frequent first. */
  each(name: "received" | "sent" | "reasons" | "codes"): [string, number][] {
    const [before, after] = [this.#before.sheet[name], this.#after.sheet[name]];
    return Object.entries(after)
      .map(([key, count]): [string, number] => [key, count - (before[key] ?? 0)])
      .filter(([, count]) => count > 0)
      .sort(([, a], [, b]) => b - a);
  }

  times(name: keyof TallySheet["times"]): Histogram {
    const times = new Histogram();
    times.merge(this.#after.sheet.times[name]);
    return times;
  }
}

/** A row for each figure, a column for each fleet. */
export function tableOf(runs: readonly Run[]): string {
  const rows = new Map<string, Figure>();
  for (const { figures } of runs)
    for (const figure of figures) rows.set(`${figure.step} ${figure.name}`, figure);
  const columns = runs.map(({ crawlers }) => ({ title: grouped(crawlers), align: "right" as const }));
  return formatTable(
    [{ title: "step" }, { title: "figure" }, ...columns],
    [...rows.values()].map(({ step, name, unit }) => [
      step,
      unit === "" ? name : `${name}, ${unit}`,
      ...runs.map(({ figures }) =>
        cell(figures.find((one) => one.step === step && one.name === name)?.value),
      ),
    ]),
  );
}

function cell(value: number | null | undefined): string {
  if (value === undefined) return "";
  if (value === null) return "–";
  const size = Math.abs(value);
  if (size >= 100 || Number.isInteger(value)) return grouped(Math.round(value));
  return value.toFixed(size >= 10 ? 1 : size >= 0.1 ? 2 : 3);
}

function grouped(value: number): string {
  return value.toLocaleString("en");
}
