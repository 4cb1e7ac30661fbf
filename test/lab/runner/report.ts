/** What `all` prints, and how it ends. */
import { formatTable } from "#ops/cli/output";
import type { BenchComparison, BenchFigures } from "./compare-commits.ts";
import type { Compared, Lone } from "./compare-figures.ts";

export const exitCodes = { done: 0, worse: 1, usage: 2, failed: 3, interrupted: 130 } as const;

export function comparisonCode(all: readonly BenchComparison[]): number {
  if (all.some(isWorse)) return exitCodes.worse;
  return all.some((one) => one.type === "failed" && one.side === "here") ? exitCodes.failed : exitCodes.done;
}

function isWorse(one: BenchComparison): boolean {
  return one.type === "compared" && one.figures.some((figure) => "mark" in figure && figure.mark === "worse");
}

const right = { align: "right" } as const;

export function figuresText(all: readonly BenchFigures[]): string {
  const rows = all.flatMap(({ bench, run: one }) =>
    one.type === "measured"
      ? one.figures.map(({ name, value, unit }) => [bench, name, shown(value), unit])
      : [[bench, `failed: ${one.words}`]],
  );
  const columns = [{ title: "bench" }, { title: "figure" }, { title: "value", ...right }, { title: "unit" }];
  return `${formatTable(columns, rows)}\n`;
}

export function comparisonText(
  all: readonly BenchComparison[],
  { commit, rounds }: { readonly commit: string; readonly rounds: number },
): string {
  const rows = all.flatMap((one) =>
    one.type === "failed"
      ? [[one.bench, one.side === "here" ? `failed: ${one.words}` : `cannot be compared: ${one.words}`]]
      : one.figures.map((figure) => [one.bench, ...cells(figure)]),
  );
  const columns = [
    { title: "bench" },
    { title: "figure" },
    { title: "unit" },
    { title: "there", ...right },
    { title: "here", ...right },
    { title: "here / there", ...right },
    { title: "rounds" },
    { title: "" },
  ];
  const byItsOwn = all.filter((one) => one.type === "compared" && one.byItsOwn).map(({ bench }) => bench);
  return [
    `this checkout beside ${commit.slice(0, 8)}, medians of ${rounds} rounds in turns`,
    "",
    formatTable(columns, rows),
    ...(byItsOwn.length > 0 ? [`Measured there by its own bench: ${byItsOwn.join(", ")}.`] : []),
    "",
  ].join("\n");
}

function cells(figure: Compared | Lone): readonly string[] {
  const { name, unit } = figure;
  if ("only" in figure) {
    const value = shown(figure.value);
    return figure.only === "here" ? [name, unit, "", value] : [name, unit, value];
  }
  const [least, most] = figure.ratios.map((ratio) => ratio.toFixed(2));
  const ratio = figure.ratio.toFixed(2);
  return [name, unit, shown(figure.there), shown(figure.here), ratio, `${least} to ${most}`, figure.mark];
}

/** Three digits that count. */
function shown(value: number): string {
  if (value === 0 || value >= 100) return Math.round(value).toLocaleString("en-GB");
  return value.toPrecision(3);
}
