/** A subnet as lists, trees and files show it. */

import { asHolderId, type CrawlerId, type HolderId, type SubnetId } from "#core/ids";
import { formatRange } from "#core/ip/range";
import { countryOf, registryOf } from "../subnets/subnet.ts";
import { noId } from "../subnets/subnet-rows.ts";
import type { ExploreReads, NamedHolder } from "./explore-ports.ts";
import { endPlace, rangeAtPlace } from "./places.ts";
import type { ExploredWorld } from "./world.ts";

export interface ExploredSubnet {
  readonly range: string;
  /** The registry's own name for it; may be empty. */
  readonly name: string;
  readonly holder: NamedHolder | null;
  readonly country: string | null;
  readonly registry: string;
  /** `delegated`: by a decision of its own; `inherited`: by that of `decidedFor`. */
  readonly state: "delegated" | "inherited" | "none";
  readonly crawler: string | null;
  /** The subnet whose delegation holds here. */
  readonly decidedFor: string | null;
  /** Null where nobody measured. */
  readonly rttMs: number | null;
  readonly delegatedAt: string | null;
  /** Of its own hosts; those of subnets within it are theirs. */
  readonly pagesPerDay: number;
  /** Hosts with pages that are due. */
  readonly dueHosts: number;
  /** It has due hosts and no delegation of its own. */
  readonly waiting: boolean;
  readonly anycast: boolean;
  readonly finer: boolean;
  /** Registered subnets that start within it. */
  readonly subnetsWithin: number;
}

export interface LinePorts {
  readonly reads: Pick<ExploreReads, "holders">;
  readonly crawlerName: (crawlerId: CrawlerId) => string | null;
}

/** In the order of the places. */
export async function subnetLines(
  world: ExploredWorld,
  places: readonly number[],
  { reads, crawlerName }: LinePorts,
): Promise<ExploredSubnet[]> {
  const wanted = new Set(places.map((place) => world.columns.holderIds[place] as number));
  wanted.delete(noId);
  const named = wanted.size === 0 ? [] : await reads.holders([...wanted].map(asHolderId));
  const holders = new Map<HolderId, NamedHolder>(named.map((holder) => [holder.holderId, holder]));
  return places.map((place) => lineAt(world, place, { holders, crawlerName }));
}

interface Naming {
  readonly holders: ReadonlyMap<HolderId, NamedHolder>;
  readonly crawlerName: LinePorts["crawlerName"];
}

function lineAt(world: ExploredWorld, place: number, { holders, crawlerName }: Naming): ExploredSubnet {
  const { columns, loads } = world;
  const label = columns.labels[place] as number;
  const subnetId = columns.ids[place] as SubnetId;
  const isOwn = world.isOwn(place);
  const dueHosts = loads.dueHostsAt(place);
  return {
    range: formatRange(rangeAtPlace(columns, place)),
    name: columns.names.textAt(columns.nameIds[place] as number),
    holder: holders.get(columns.holderIds[place] as HolderId) ?? null,
    country: countryOf(label),
    registry: registryOf(label),
    ...delegationAt(world, place, { isOwn, crawlerName }),
    pagesPerDay: Math.round(10 * loads.pagesPerDayAt(place)) / 10,
    dueHosts,
    waiting: !isOwn && dueHosts > 0,
    anycast: world.anycast.has(subnetId),
    finer: world.finer.has(subnetId),
    subnetsWithin: endPlace(columns, place) - place - 1,
  };
}

type LineDelegation = Pick<ExploredSubnet, "state" | "crawler" | "decidedFor" | "rttMs" | "delegatedAt">;

function delegationAt(
  world: ExploredWorld,
  place: number,
  { isOwn, crawlerName }: { readonly isOwn: boolean; readonly crawlerName: LinePorts["crawlerName"] },
): LineDelegation {
  const row = world.rows[place] as number;
  if (row < 0) return { state: "none", crawler: null, decidedFor: null, rttMs: null, delegatedAt: null };
  const owner = world.ownerPlace(place);
  const rttMs = world.rttMsAt(row);
  const since = world.sinceAt(row);
  return {
    state: isOwn ? "delegated" : "inherited",
    crawler: crawlerName(world.crawlerIdAt(row)),
    decidedFor: owner < 0 ? null : formatRange(rangeAtPlace(world.columns, owner)),
    rttMs: Number.isNaN(rttMs) ? null : Math.round(100 * rttMs) / 100,
    delegatedAt: since === 0 ? null : new Date(1000 * since).toISOString(),
  };
}
