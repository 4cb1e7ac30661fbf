/** Ranges out of real files of one block per line, each once, sorted into the order of places. */
import { createReadStream } from "node:fs";
import { createInterface } from "node:readline";
import { createGunzip } from "node:zlib";
import { columnsOf, type RangeColumns } from "#coordinator/place/subnets/range-columns";
import { nestRanges } from "#coordinator/place/subnets/tree-columns";
import { type IpRange, parseRange } from "#core/ip/range";

/** From a gzip file with lines of a block, or `net:` and a block. */
export async function realRanges(path: string): Promise<Readonly<Record<4 | 6, RangeColumns>>> {
  const found = { 4: new Map<string, IpRange>(), 6: new Map<string, IpRange>() };
  for await (const line of createInterface({ input: createReadStream(path).pipe(createGunzip()) })) {
    const text = line.startsWith("net:") ? line.slice(4).trim() : line;
    const range = /^[0-9a-f.:]+\/\d+$/i.test(text) ? parseRange(text) : null;
    if (range) found[range.family].set(text, range);
  }
  const sorted = (family: 4 | 6) => nestRanges(columnsOf([...found[family].values()])).columns;
  return { 4: sorted(4), 6: sorted(6) };
}
