/** `--allow`: private and other special-purpose networks that may be crawled, such as an intranet or test server. */

import { UsageError } from "#core/errors";
import { parseRange } from "#core/ip/range";

export const allowOption = [
  "--allow <range...>",
  "private networks that may be crawled, such as 10.0.0.0/8; each crawler's host has to allow them, too (allowRanges)",
] as const;

export function checkedRanges(ranges: readonly string[]): readonly string[] {
  const wrong = ranges.filter((text) => parseRange(text) === null);
  if (wrong.length === 0) return ranges;
  throw new UsageError(`--allow ${wrong.join(" ")}: must be a range, such as 10.0.0.0/8`);
}
