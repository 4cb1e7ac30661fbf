/**
 * The routes of all files of an import in growing columns, and the table that they make: each prefix once, with one
 * origin. Where several ASes originate the same prefix, which is allowed (RFC 1930, section 7; anycast, a move under way)
 * or a mistake, the one that most peers see counts, of equals the lowest number: the same whatever the order of lines.
 */
import {
  emptyPrefixes,
  type Family,
  type OriginatedPrefixes,
  prefixText,
  type RoutingTable,
} from "#coordinator/subnets/routing-table";
import { SourceFileError } from "#core/errors";
import { GrowingColumn } from "#core/text-pool";
import type { RouteRecord } from "../formats/record.ts";

/** Columns as they lie in memory: what goes from one thread to another. */
export interface RouteParts {
  readonly firstBlocks: Float64Array;
  readonly lengths: Uint8Array;
  readonly asNumbers: Uint32Array;
  readonly peers: Uint32Array;
}

export interface RoutesParts {
  readonly ipv4: RouteParts;
  readonly ipv6: RouteParts;
}

/** Ten times what the Internet has in 2026: 1.1 million and 0.25 million. */
const mostRoutes = 14_000_000;

const multiOriginShown = 20;

export interface MultiOrigin {
  readonly prefix: string;
  /** The one that counts first. */
  readonly asNumbers: readonly number[];
}

export interface SettledRoutes {
  readonly table: RoutingTable;
  /** Prefixes that more than one AS originates, and the first of them. */
  readonly multiOrigin: number;
  readonly multiOriginSamples: readonly MultiOrigin[];
}

export class Routes {
  readonly #families = { 4: new RouteColumns(), 6: new RouteColumns() };

  get count(): number {
    return this.#families[4].count + this.#families[6].count;
  }

  add(route: RouteRecord, file: string): void {
    if (this.count === mostRoutes)
      throw new SourceFileError(file, route.line, `more than ${mostRoutes.toLocaleString("en")} routes`);
    this.#families[route.family].add(route);
  }

  parts(): RoutesParts {
    return { ipv4: this.#families[4].parts(), ipv6: this.#families[6].parts() };
  }

  absorb({ ipv4, ipv6 }: RoutesParts): void {
    this.#families[4].absorb(ipv4);
    this.#families[6].absorb(ipv6);
  }

  settle(): SettledRoutes {
    const ipv4 = settleFamily(4, this.#families[4].parts());
    const ipv6 = settleFamily(6, this.#families[6].parts());
    return {
      table: { ipv4: ipv4.prefixes, ipv6: ipv6.prefixes },
      multiOrigin: ipv4.multiOrigin + ipv6.multiOrigin,
      multiOriginSamples: [...ipv4.samples, ...ipv6.samples].slice(0, multiOriginShown),
    };
  }
}

class RouteColumns {
  readonly #firstBlocks = new GrowingColumn((length) => new Float64Array(length));
  readonly #lengths = new GrowingColumn((length) => new Uint8Array(length));
  readonly #asNumbers = new GrowingColumn((length) => new Uint32Array(length));
  readonly #peers = new GrowingColumn((length) => new Uint32Array(length));

  get count(): number {
    return this.#lengths.length;
  }

  add({ firstBlock, length, asNumber, peers }: Omit<RouteRecord, "type" | "line" | "family">): void {
    this.#firstBlocks.push(firstBlock);
    this.#lengths.push(length);
    this.#asNumbers.push(asNumber);
    this.#peers.push(peers);
  }

  parts(): RouteParts {
    return {
      firstBlocks: this.#firstBlocks.values(),
      lengths: this.#lengths.values(),
      asNumbers: this.#asNumbers.values(),
      peers: this.#peers.values(),
    };
  }

  absorb({ firstBlocks, lengths, asNumbers, peers }: RouteParts): void {
    for (let at = 0; at < lengths.length; at += 1) {
      this.add({
        firstBlock: firstBlocks[at] as number,
        length: lengths[at] as number,
        asNumber: asNumbers[at] as number,
        peers: peers[at] as number,
      });
    }
  }
}

interface SettledFamily {
  readonly prefixes: OriginatedPrefixes;
  readonly multiOrigin: number;
  readonly samples: readonly MultiOrigin[];
}

function settleFamily(family: Family, routes: RouteParts): SettledFamily {
  const { firstBlocks, lengths, asNumbers } = routes;
  if (lengths.length === 0) return { prefixes: emptyPrefixes, multiOrigin: 0, samples: [] };
  const order = sortedRoutes(routes);
  const kept = new Int32Array(order.length);
  const samples: MultiOrigin[] = [];
  let count = 0;
  let multiOrigin = 0;
  for (let from = 0; from < order.length; ) {
    const best = order[from] as number;
    const origins = [asNumbers[best] as number];
    let to = from + 1;
    for (; to < order.length && isSamePrefix(routes, best, order[to] as number); to += 1) {
      const asNumber = asNumbers[order[to] as number] as number;
      if (!origins.includes(asNumber) && origins.length < multiOriginShown) origins.push(asNumber);
    }
    kept[count++] = best;
    from = to;
    if (origins.length === 1) continue;
    multiOrigin += 1;
    if (samples.length < multiOriginShown)
      samples.push({
        prefix: prefixText(family, firstBlocks[best] as number, lengths[best] as number),
        asNumbers: origins,
      });
  }
  const rows = kept.subarray(0, count);
  const prefixes = {
    firstBlocks: Float64Array.from(rows, (row) => firstBlocks[row] as number),
    lengths: Uint8Array.from(rows, (row) => lengths[row] as number),
    asNumbers: Uint32Array.from(rows, (row) => asNumbers[row] as number),
  };
  return { prefixes, multiOrigin, samples };
}

function isSamePrefix({ firstBlocks, lengths }: RouteParts, a: number, b: number): boolean {
  return firstBlocks[a] === firstBlocks[b] && lengths[a] === lengths[b];
}

/** By first block, the widest first; of one prefix by peers, the most first, then by AS number. */
function sortedRoutes({ firstBlocks, lengths, asNumbers, peers }: RouteParts): Int32Array {
  const at = (column: ArrayLike<number>, row: number) => column[row] as number;
  const compare = (a: number, b: number) =>
    at(firstBlocks, a) - at(firstBlocks, b) ||
    at(lengths, a) - at(lengths, b) ||
    at(peers, b) - at(peers, a) ||
    at(asNumbers, a) - at(asNumbers, b);
  const order = Int32Array.from(lengths, (_, row) => row);
  // A dump is in order mostly: then there is nothing to do but to see that.
  for (let row = 1; row < order.length; row += 1) if (compare(row - 1, row) > 0) return order.sort(compare);
  return order;
}
