/** Parses option values for commander, and defines `--allow`. */
import { InvalidArgumentError } from "commander";
import { UsageError } from "#core/errors";
import { parseRange } from "#core/ip/range";

export function boundedNumber(least: number, most: number): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (text.trim() === "" || !(value >= least && value <= most)) {
      throw new InvalidArgumentError(`a number from ${least} to ${most} is expected`);
    }
    return value;
  };
}

/** Up to one hour, which no RTT exceeds. */
export const milliseconds = boundedNumber(0, 3_600_000);

export const share = boundedNumber(0, 1);

export function boundedInteger(least: number, most: number): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (!/^\d{1,15}$/.test(text) || value < least || value > most) {
      throw new InvalidArgumentError(`a whole number from ${least} to ${most} is expected`);
    }
    return value;
  };
}

/** Parses a comma-separated list of these names, in which each may occur once. */
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

// `--allow`: private and other special-purpose networks that may be crawled, such as an intranet or test server.

export const allowOption = [
  "--allow <range...>",
  "private networks that may be crawled, such as 10.0.0.0/8; each crawler's host has to allow them, too (allowRanges)",
] as const;

export function checkedRanges(ranges: readonly string[]): readonly string[] {
  const wrong = ranges.filter((text) => parseRange(text) === null);
  if (wrong.length === 0) return ranges;
  throw new UsageError(`--allow ${wrong.join(" ")}: must be a range, such as 10.0.0.0/8`);
}
