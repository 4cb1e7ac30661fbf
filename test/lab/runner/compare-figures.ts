/** Compares the figures of one bench on two commits. */
import { type Figure, median } from "../figure.ts";

/** The change up to which a figure counts as unchanged. */
const noticed = 1.05;

/** `worse?`: worse by the medians, but within the range of the rounds. */
type Mark = "" | "better" | "worse?" | "worse";

export interface Compared {
  readonly name: string;
  readonly unit: string;
  readonly there: number;
  readonly here: number;
  /** This commit's median divided by the other's. */
  readonly ratio: number;
  /** Smallest and largest of the rounds. */
  readonly ratios: readonly [number, number];
  readonly mark: Mark;
}

/** A figure that only one side has. */
export interface Lone {
  readonly name: string;
  readonly unit: string;
  readonly only: "there" | "here";
  readonly value: number;
}

/** The figures of one side's rounds, in order. */
export type Rounds = readonly (readonly Figure[])[];

export function compareFigures(there: Rounds, here: Rounds): readonly (Compared | Lone)[] {
  const [theirs, ours] = [valuesByName(there), valuesByName(here)];
  const names = new Set([...ours.keys(), ...theirs.keys()]);
  return [...names].map((name) => {
    const [a, b] = [theirs.get(name), ours.get(name)];
    if (a === undefined) return lone(b!, "here");
    if (b === undefined || a.figure.unit !== b.figure.unit) return lone(a, "there");
    return compared(b.figure, a.values, b.values);
  });
}

interface Values {
  readonly figure: Figure;
  readonly values: number[];
}

function valuesByName(rounds: Rounds): ReadonlyMap<string, Values> {
  const byName = new Map<string, Values>();
  for (const figure of rounds.flat()) {
    const known = byName.get(figure.name);
    if (known) known.values.push(figure.value);
    else byName.set(figure.name, { figure, values: [figure.value] });
  }
  return byName;
}

function lone({ figure: { name, unit }, values }: Values, only: Lone["only"]): Lone {
  return { name, unit, only, value: median(values) };
}

function compared(
  { name, unit, higherIsBetter = false }: Figure,
  there: readonly number[],
  here: readonly number[],
): Compared {
  const ratio = ratioOf(median(here), median(there));
  const ratios = here.slice(0, there.length).map((value, round) => ratioOf(value, there[round]!));
  const mark = higherIsBetter ? markOf(1 / ratio, here, there) : markOf(ratio, there, here);
  return {
    ...{ name, unit, there: median(there), here: median(here), ratio, mark },
    ratios: [Math.min(...ratios), Math.max(...ratios)],
  };
}

/** `low` is the side that is lower after a change for the worse. */
function markOf(worseBy: number, low: readonly number[], high: readonly number[]): Mark {
  if (worseBy > noticed) return Math.max(...low) < Math.min(...high) ? "worse" : "worse?";
  return worseBy < 1 / noticed && Math.max(...high) < Math.min(...low) ? "better" : "";
}

function ratioOf(value: number, of: number): number {
  return value === of ? 1 : value / of;
}
