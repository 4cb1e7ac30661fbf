/**
 * Decides which new URLs have room at their hosts: shallowest first, then in order found, up to the host's budget. Some of
 * those beyond it are held until it grows, and the rest is dropped.
 */
import type { HostHash } from "#core/ids";
import type { AdmittedUrl } from "../batch/found-urls.ts";
import { firstHosts, type HostPages, hostBudget } from "./budgets.ts";

/** Maximum URLs held over a host's budget. The rest is dropped. */
const mostHeldUrls = 1000;

/**
 * Maximum held URLs of a domain's host at `place`. After the first `firstHosts` hosts it falls as 1/place, so that the
 * domain's total grows with the logarithm of its hosts.
 */
export const mostHeldAt = (place: number): number =>
  place < firstHosts ? mostHeldUrls : Math.floor((mostHeldUrls * firstHosts) / place);

/** SQL: the same. `place` is a column. */
export const mostHeldSql = (place: string): string =>
  `case when ${place} < ${firstHosts} then ${mostHeldUrls} else ${mostHeldUrls * firstHosts} / ${place} end`;

/** Maximum URLs of a host admitted as its sitemaps or feeds. */
export const mostListUrls = 60;

export interface HostRoom {
  readonly refused: string | null;
  readonly open: number;
  /** URLs that may be held in addition. */
  readonly holds: number;
  readonly lists: number;
}

export function roomAtFirst(pagesPerHost: number, place = 0): Pick<HostRoom, "open" | "holds"> {
  const open = hostBudget(noPages, pagesPerHost);
  return { open, holds: Math.max(0, Math.min(mostHeldAt(place), pagesPerHost - open)) };
}

const noPages: HostPages = {
  good: 0,
  nearDuplicates: 0,
  notFound: 0,
  empty: 0,
  failed: 0,
  trappedLinks: 0,
  outsideLinks: 0,
};

export interface PlacedUrl {
  readonly url: AdmittedUrl;
  readonly state: "due" | "held" | "refused";
  readonly reason: string | null;
}

export interface NewUrl extends PlacedUrl {
  readonly links: number;
  /** Default: now. */
  readonly foundAt?: Date;
}

export const deepest = 32_767;
const mostLinks = 2_147_483_647;
export const linksIn = (links: number): number => Math.max(0, Math.min(mostLinks, links));

/** Amounts to add to the host's row. */
export interface HostCounts {
  /** Does not count held URLs. */
  urls: number;
  due: number;
  held: number;
  lists: number;
  leftOut: number;
}

/** Returns the URLs for which there is room, host by host. A host that is not in `rooms` takes none. */
export function placeUrls(
  urls: readonly AdmittedUrl[],
  rooms: ReadonlyMap<HostHash, HostRoom>,
): { readonly placed: PlacedUrl[]; readonly counts: ReadonlyMap<HostHash, HostCounts> } {
  const byHost = new Map<HostHash, PlacedUrl[]>();
  const counts = new Map<HostHash, HostCounts>();
  for (const url of shallowestFirst(urls)) {
    const { hostHash } = url.key;
    const room = rooms.get(hostHash);
    if (room === undefined) continue;
    const count = counts.get(hostHash) ?? { urls: 0, due: 0, held: 0, lists: 0, leftOut: 0 };
    counts.set(hostHash, count);
    const state = stateIn(room, count, url);
    if (state === null) {
      count.leftOut += 1;
      continue;
    }
    if (url.isList) count.lists += 1;
    count[state === "held" ? "held" : "urls"] += 1;
    if (state === "due") count.due += 1;
    const placed = byHost.get(hostHash) ?? [];
    byHost.set(hostHash, placed);
    placed.push({ url, state, reason: state === "refused" ? room.refused : null });
  }
  return { placed: [...byHost.values()].flat(), counts };
}

/** Null if there is no room for it. */
function stateIn(room: HostRoom, count: HostCounts, { isList }: AdmittedUrl): PlacedUrl["state"] | null {
  if (isList && room.lists + count.lists >= mostListUrls) return null;
  if (count.urls < room.open) return room.refused === null ? "due" : "refused";
  return room.refused === null && count.held < room.holds ? "held" : null;
}

function shallowestFirst(urls: readonly AdmittedUrl[]): readonly AdmittedUrl[] {
  const isSorted = urls.every(({ depth }, index) => index === 0 || urls[index - 1]!.depth <= depth);
  return isSorted ? urls : [...urls].sort((a, b) => a.depth - b.depth);
}
