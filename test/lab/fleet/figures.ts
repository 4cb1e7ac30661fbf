/** Figures of the steps, and the tables that are made of them: a column for each size of the fleet, and how they grow. */
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

/** How a figure grows with the fleet: b of a × N^b by least squares over the logarithms; null where there is no telling. */
export function growth(points: readonly (readonly [number, number | null])[]): number | null {
  const logs = points.flatMap(([n, value]) =>
    value !== null && value > 0 ? [[Math.log(n), Math.log(value)]] : [],
  );
  if (logs.length < 2 || logs.length < points.length) return null;
  const mean = (at: 0 | 1) => logs.reduce((sum, point) => sum + point[at]!, 0) / logs.length;
  const [meanX, meanY] = [mean(0), mean(1)];
  const over = logs.reduce((sum, [x = 0, y = 0]) => sum + (x - meanX) * (y - meanY), 0);
  const under = logs.reduce((sum, [x = 0]) => sum + (x - meanX) ** 2, 0);
  return under === 0 ? null : over / under;
}

export function tableOf(runs: readonly Run[]): string[][] {
  const rows = new Map<string, Figure>();
  for (const { figures } of runs)
    for (const figure of figures) rows.set(`${figure.step} ${figure.name}`, figure);
  const isSeveral = runs.length > 1;
  const heads = [
    "step",
    "figure",
    ...runs.map(({ crawlers }) => grouped(crawlers)),
    ...(isSeveral ? ["grows as"] : []),
  ];
  // A figure that came up in a later run alone stands with its step all the same.
  const steps = [...new Set([...rows.values()].map(({ step }) => step))];
  const ordered = steps.flatMap((step) => [...rows.values()].filter((figure) => figure.step === step));
  return [heads, ...ordered.map((figure) => rowOf(figure, runs, isSeveral))];
}

function rowOf({ step, name, unit }: Figure, runs: readonly Run[], isSeveral: boolean): string[] {
  const valueIn = ({ figures }: Run) => figures.find((one) => one.step === step && one.name === name)?.value;
  const exponent = growth(runs.map((run) => [run.crawlers, valueIn(run) ?? null]));
  return [
    step,
    unit === "" ? name : `${name} (${unit})`,
    ...runs.map((run) => cell(valueIn(run))),
    ...(isSeveral ? [exponent === null ? "" : `N^${exponent.toFixed(1)}`] : []),
  ];
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

export function printed(table: readonly (readonly string[])[]): string {
  const widths = table[0]!.map((_, column) => Math.max(...table.map((row) => row[column]!.length)));
  const line = (row: readonly string[]) =>
    row.map((text, at) => (at < 2 ? text.padEnd(widths[at]!) : text.padStart(widths[at]!))).join("  ");
  return table.map(line).join("\n");
}

export function markdown(table: readonly (readonly string[])[]): string {
  const line = (row: readonly string[]) => `| ${row.join(" | ")} |`;
  const [heads = [], ...rows] = table;
  const rule = heads.map((_, at) => (at < 2 ? "---" : "---:"));
  return [line(heads), line(rule), ...rows.map(line)].join("\n");
}
