/** Parses a number option within bounds, for commander. */
import { InvalidArgumentError } from "commander";

export function boundedNumber(least: number, most: number): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (text.trim() === "" || !(value >= least && value <= most)) {
      throw new InvalidArgumentError(`a number from ${least} to ${most} is expected`);
    }
    return value;
  };
}

/** One hour; no RTT is longer. */
export const milliseconds = boundedNumber(0, 3_600_000);

export const share = boundedNumber(0, 1);

// Parses an integer option within bounds, for commander.

export function boundedInteger(least: number, most: number): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (!/^\d{1,15}$/.test(text) || value < least || value > most) {
      throw new InvalidArgumentError(`a whole number from ${least} to ${most} is expected`);
    }
    return value;
  };
}

/** Parses a comma-separated list of these names, each once. */
export function listOf<Name extends string>(names: readonly Name[]): (text: string) => Name[] {
  return (text) => [
    ...new Set(
      text.split(",").map((part) => {
        const known = names.find((name) => name.toLowerCase() === part.trim().toLowerCase());
        if (known !== undefined) return known;
        throw new InvalidArgumentError(`"${part.trim().slice(0, 40)}" is none of ${names.join(", ")}.`);
      }),
    ),
  ];
}
