/**
 * Which of the URLs that are new to the frontier have a place at their hosts: the shallowest first, then as they were
 * found, up to the host's budget; beyond it some are held until it has earned more, and the rest is left out.
 */
import type { HostHash } from "#core/ids";
import type { AdmittedUrl } from "../batch/found-urls.ts";
import { firstHosts, type HostPages, hostBudget } from "./budgets.ts";

/** URLs over a host's budget that are held for when it has earned more; what comes beyond them is left out. */
const mostHeldUrls = 1000;

/** Of a host that so many others of its domain were there before: all hosts of a domain together hold little more than its first ones. */
export const mostHeldAt = (place: number): number =>
  place < firstHosts ? mostHeldUrls : Math.floor((mostHeldUrls * firstHosts) / place);

/** SQL: the same; `place` is a column. */
export const mostHeldSql = (place: string): string =>
  `case when ${place} < ${firstHosts} then ${mostHeldUrls} else ${mostHeldUrls * firstHosts} / ${place} end`;

/** URLs of a host that are admitted because they were named as its sitemaps or feeds, over all time. */
export const mostListUrls = 60;

/** Of a host, before. */
export interface HostRoom {
  /** Why the host is refused, and its URLs with it; null: it is not. */
  readonly refused: string | null;
  /** URLs that it may have more. */
  readonly open: number;
  /** URLs that may be held beyond those. */
  readonly holds: number;
  /** Its sitemaps and feeds. */
  readonly lists: number;
}

/** Of a host that nobody knew. */
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
  /** Why it is refused. */
  readonly reason: string | null;
}

/** What is added to the host's row. */
export interface HostCounts {
  /** Without those that are held. */
  urls: number;
  due: number;
  held: number;
  lists: number;
  leftOut: number;
}

/** Those with a place, host by host. A host without a room takes none. */
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

/** Null: there is no place for it. */
function stateIn(room: HostRoom, count: HostCounts, { isList }: AdmittedUrl): PlacedUrl["state"] | null {
  if (isList && room.lists + count.lists >= mostListUrls) return null;
  if (count.urls < room.open) return room.refused === null ? "due" : "refused";
  return room.refused === null && count.held < room.holds ? "held" : null;
}

function shallowestFirst(urls: readonly AdmittedUrl[]): readonly AdmittedUrl[] {
  const isSorted = urls.every(({ depth }, index) => index === 0 || urls[index - 1]!.depth <= depth);
  return isSorted ? urls : [...urls].sort((a, b) => a.depth - b.depth);
}
