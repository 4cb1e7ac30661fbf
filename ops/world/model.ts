/**
 * The emulated Internet as a value: who is where, with which addresses, how the registries have filed them, and how
 * long a round trip takes. `generateWorld` makes it from a seed, and everything else in this folder only reads it. Two
 * processes that make the same world (the `nearcrawl` command and the world's own process) get the same values.
 */

import type { Registry } from "#coordinator/place/subnets/subnet";
import type { IpRange } from "#core/ip/range";
import type { Language, Place } from "./places.ts";

export interface World {
  readonly name: string;
  readonly seed: number;
  readonly places: readonly Place[];
  readonly holders: readonly WorldHolder[];
  /** Sorted by family, then by first address, then the widest first, so that parents precede their children. */
  readonly subnets: readonly WorldSubnet[];
  readonly crawlers: readonly WorldCrawler[];
  readonly sites: readonly WorldSite[];
  /** Ranges whose two parts are used in different places, although the registry lists a single range. */
  readonly splitLeaves: readonly SplitLeaf[];
  /** Undisturbed round-trip time in ms from a crawler to a site's or crawler's public address. Null when nobody has it. */
  rttMs(crawlerIndex: number, address: string): number | null;
  /** Undisturbed round-trip time in ms between two crawlers. 0 from a crawler to itself. */
  crawlerRttMs(a: number, b: number): number;
}

/**
 * What a range is in its registry: a whole /8 (or IPv6 block) that IANA assigned, a national registry's part, a
 * provider's allocation, a pool within it, an organisation's or a department's range, or one host.
 */
export type SubnetKind = "iana" | "national" | "allocation" | "pool" | "assignment" | "host";

export interface WorldSubnet {
  readonly range: IpRange;
  /** Index in `World.subnets`. */
  readonly parent: number | null;
  /** Index in `World.holders`. */
  readonly holder: number | null;
  /** The registered country, which may differ from that of the hosts. */
  readonly country: string | null;
  readonly registry: Registry;
  readonly kind: SubnetKind;
  readonly name: string;
}

export interface WorldHolder {
  readonly name: string;
  readonly country: string | null;
  readonly registry: Registry;
}

export interface WorldCrawler {
  readonly name: string;
  readonly address: string;
  /** Index in `World.places`. Null when unknown. */
  readonly place: number | null;
  /** The country as registered. */
  readonly country: string | null;
  /** The address's most specific non-unary subnet. */
  readonly subnet: number;
}

export interface WorldSite {
  readonly host: string;
  readonly address: string;
  readonly place: number | null;
  readonly country: string | null;
  /** The address's most specific non-unary subnet. */
  readonly subnet: number;
  readonly language: Language;
  /** Number of ordinary pages, including the front page. Redirects, missing and duplicate pages are not counted. */
  readonly pages: number;
  readonly bandwidthKbps: number;
  /** From the arrival of the request's last byte at the server to the response's first byte. */
  readonly serverDelayMs: number;
  /** All addresses of the site's name, `address` first. If there are several, each crawler is given the nearest. */
  readonly addresses: readonly string[];
}

export interface SplitLeaf {
  /** Index in `World.subnets`. */
  readonly subnet: number;
  /** The first address of the second part, as a number. */
  readonly boundary: number;
  /** Indexes in `World.places` of the two parts. */
  readonly places: readonly [number, number];
}

/**
 * What the site's name resolves to for a crawler: its address, or the nearest of several. Other clients (null) get the
 * first one.
 */
export function addressSeenBy(
  world: Pick<World, "rttMs">,
  site: WorldSite,
  crawlerIndex: number | null,
): string {
  if (crawlerIndex === null || site.addresses.length === 1) return site.address;
  const rttOf = (address: string) => world.rttMs(crawlerIndex, address) ?? Number.POSITIVE_INFINITY;
  return site.addresses.reduce((nearest, one) => (rttOf(one) < rttOf(nearest) ? one : nearest));
}

/** The names on the path from the top of the registry hierarchy to a subnet, below a common root. */
export function pathOf(world: World, subnet: number): string[] {
  const path: string[] = [];
  for (let at: number | null = subnet; at !== null; at = world.subnets[at]?.parent ?? null) {
    path.push(world.subnets[at]?.name ?? "");
  }
  path.push("root");
  return path.reverse();
}
