/**
 * A world for decisions, by a seed: a tree nested like the registries', with holders and countries, crawlers in some of the
 * countries, and RTTs that roughly follow the places, as routes do.
 */

import type { RangeColumns } from "#coordinator/place/subnets/range-columns";
import { type SubnetTree, treeOfRows } from "#coordinator/place/subnets/subnet-tree";
import { SubnetRows } from "#coordinator/place/subnets/tree-columns";
import { asCrawlerId, type CrawlerId, type SubnetId } from "#core/ids";
import { formatAddress } from "#core/ip/address";
import { mix32, seededRandom } from "#core/random";
import { smallestOf } from "#core/small-collections";
import { registryLikeIpv4 } from "../ip-tree/registry-like-ranges.ts";

const countries = 200;
/** Round trips across the world, in ms. */
const worldMs = 250;
const largeHolders = 2000;

export interface RegistryWorld {
  readonly tree: SubnetTree;
  readonly columns: RangeColumns;
}

/** Approximately this number of subnets; ids are the positions times 3: a third of the sequence went to other rows. */
export function registryWorld(subnets: number, seed: number): RegistryWorld {
  const columns = registryLikeIpv4(subnets, seed);
  const rows = new SubnetRows();
  for (let place = 0; place < columns.count; place += 1) {
    const first = columns.first[place] as number;
    rows.addIpv4(first, columns.last[place] as number, {
      id: 3 * place + 1,
      holderId: holderAt(place),
      country: countryCode(countryOf(first)),
      registry: "ripencc",
      name: `NET-${place % 100_003}`,
    });
  }
  return { tree: treeOfRows(rows), columns };
}

/** Two in three belong to one of three neighbours' holders, the others to a large one with subnets everywhere. */
function holderAt(place: number): number {
  const drawn = mix32(place >> 1);
  return drawn % 3 === 0 ? 1 + (drawn % largeHolders) : largeHolders + Math.trunc(place / 3);
}

/** A /12 is in one country, except one /16 in eight. */
function countryOf(address: number): number {
  const isElsewhere = mix32((address >>> 16) ^ 0x5bd1) % 8 === 0;
  return mix32(isElsewhere ? address >>> 16 : address >>> 20) % countries;
}

function countryCode(country: number): string {
  return String.fromCharCode(65 + Math.trunc(country / 26), 65 + (country % 26));
}

export interface Crawlers {
  readonly ids: readonly CrawlerId[];
  /** The place of each, in their order. */
  readonly homes: readonly {
    readonly country: string;
    readonly latitude: number;
    readonly longitude: number;
  }[];
  /** The RTT between two of them, in ms. */
  readonly peerRttMs: (from: number, to: number) => number;
  /** The RTT in ms from the crawler at an index to an address, the same for a whole /20. */
  readonly rttMs: (crawler: number, address: number) => number;
  /** The indices of the two nearest to an address. */
  readonly nearestTwo: (address: number) => readonly [first: number, second: number];
  /** The indices of the given number nearest to a crawler, by straight distance. */
  readonly neighbours: (crawler: number, most: number) => Int32Array;
}

export function crawlersIn(count: number): Crawlers {
  const homeCountries = Array.from({ length: count }, (_, index) => mix32(index + 77) % countries);
  const homes = homeCountries.map((country, index) => spotOf(country, index, 30));
  const rttMs = (crawler: number, address: number) => {
    const at = spotOf(countryOf(address), address >>> 12, 20);
    return rttBetween(homes[crawler]!, at, mix32(address >>> 12) + crawler);
  };
  return {
    ids: homes.map((_, index) => asCrawlerId(index + 1)),
    // 53 km per ms at most, so that no two crawlers are nearer than light allows.
    homes: homes.map(([xMs, yMs], index) => ({
      country: countryCode(homeCountries[index]!),
      latitude: (yMs / worldMs) * 90 - 45,
      longitude: (xMs / worldMs) * 120 - 60,
    })),
    peerRttMs: (from, to) =>
      from === to ? 0 : rttBetween(homes[from]!, homes[to]!, mix32(Math.min(from, to)) + Math.max(from, to)),
    rttMs,
    nearestTwo: (address) => {
      const [x, y] = spotOf(countryOf(address), address >>> 12, 20);
      let [first, second] = [-1, -1];
      let [firstMs, secondMs] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY];
      for (let index = 0; index < homes.length; index++) {
        const [homeX, homeY] = homes[index]!;
        // No route is shorter than the straight one.
        if (1 + Math.hypot(homeX - x, homeY - y) >= secondMs) continue;
        const ms = rttMs(index, address);
        if (ms < firstMs) [first, second, firstMs, secondMs] = [index, first, ms, firstMs];
        else if (ms < secondMs) [second, secondMs] = [index, ms];
      }
      return [first, second];
    },
    neighbours: (crawler, most) => {
      const [x, y] = homes[crawler]!;
      const straight = Float64Array.from(homes, ([homeX, homeY]: Spot) => Math.hypot(homeX - x, homeY - y));
      straight[crawler] = Number.NaN;
      return smallestOf(straight, most);
    },
  };
}

type Spot = readonly [xMs: number, yMs: number];

function spotOf(country: number, within: number, spreadMs: number): Spot {
  const [x, y] = [mix32(2 * country + 1), mix32(2 * country + 2)];
  const [dx, dy] = [mix32(within ^ 0x2f1b), mix32(within ^ 0x7e35)];
  return [share(x) * worldMs + share(dx) * spreadMs, share(y) * worldMs + share(dy) * spreadMs];
}

/** Routes are longer than the straight line by up to two fifths, at random. */
function rttBetween(a: Spot, b: Spot, route: number): number {
  const detour = 1 + 0.4 * share(mix32(route | 0));
  return 1 + Math.hypot(a[0] - b[0], a[1] - b[1]) * detour;
}

const share = (hash: number): number => hash / 2 ** 32;

export interface Target {
  readonly address: string;
  readonly number: number;
  readonly subnetId: SubnetId;
}

/** Addresses in different smallest subnets, in random order, without `taken` subnets. */
export function targetsIn(
  { tree, columns }: RegistryWorld,
  count: number,
  taken: ReadonlySet<SubnetId>,
): Target[] {
  const random = seededRandom(count + taken.size);
  const found = new Map<SubnetId, Target>();
  while (found.size < count) {
    const place = Math.floor(random() * columns.count);
    const [first, last] = [columns.first[place] as number, columns.last[place] as number];
    const number = first + Math.floor(random() * (last - first + 1));
    const subnetId = tree.mostSpecificNonUnaryId({ family: 4, value: number });
    if (subnetId === null || taken.has(subnetId)) continue;
    found.set(subnetId, { address: formatAddress({ family: 4, value: number }), number, subnetId });
  }
  return [...found.values()];
}
