/** Who is at which address of a generated world, and how long round trips between them take. */
import type { World, WorldCrawler, WorldSite } from "./model.ts";
import { type Endpoint, NetworkModel, unitVector } from "./network-model.ts";
import { exchangeCities, places } from "./places.ts";
import { RttRows } from "./rtt-rows.ts";
import type { HostDraft, WorldDraft } from "./world-draft.ts";

/** A draft's hosts with their addresses. */
export interface Placed extends Pick<World, "crawlers" | "sites"> {
  /** Addresses of the draft's replicas. */
  readonly replicas: readonly string[];
}

type RoundTrips = Pick<World, "rttMs" | "rttRow" | "crawlerRttMs">;

export function roundTrips(draft: WorldDraft, placed: Placed): RoundTrips {
  const exchanges = places.filter(({ name }) => exchangeCities.includes(name));
  const model = new NetworkModel(
    draft.seed,
    exchanges.map(({ latitude, longitude }) => unitVector(latitude, longitude)),
  );
  const ends = endsByAddress(draft, placed);
  const crawlers = placed.crawlers.map(
    ({ address }) => (ends.get(address) as readonly Endpoint[])[0] as Endpoint,
  );
  const rows = new RttRows(model, crawlers);
  return {
    rttMs: (crawlerIndex, address) => {
      const from = crawlers[crawlerIndex];
      const to = ends.get(address);
      return from && to ? Math.min(...to.map((end) => model.rttMs(from, end))) : null;
    },
    rttRow: (siteIndex, into) => {
      const to = ends.get(placed.sites[siteIndex]?.address ?? "");
      if (!to) throw new RangeError(`no site ${siteIndex}: the world has ${placed.sites.length}`);
      rows.fill(to, into);
    },
    crawlerRttMs: (a, b) => {
      const [from, to] = [crawlers[a], crawlers[b]];
      if (!from || !to) throw new RangeError(`no crawler ${from ? b : a}: the world has ${crawlers.length}`);
      return a === b ? 0 : model.rttMs(from, to);
    },
  };
}

/** One end for each address, several where it is announced from several places. */
function endsByAddress(
  draft: WorldDraft,
  { crawlers, sites, replicas }: Placed,
): Map<string, readonly Endpoint[]> {
  let ids = 0;
  const ends = new Map<string, readonly Endpoint[]>();
  // Sites that share an address are one machine: the first of them says where it is.
  const put = (address: string, hosts: readonly HostDraft[]) => {
    const made = hosts.map((host) => endpointOf(host, ids++));
    if (!ends.has(address)) ends.set(address, made);
  };
  draft.crawlers.forEach((crawler, index) => {
    put((crawlers[index] as WorldCrawler).address, [crawler]);
  });
  draft.sites.forEach((site, index) => {
    put((sites[index] as WorldSite).address, site.instances.length > 0 ? site.instances : [site]);
  });
  draft.replicas.forEach((replica, index) => {
    put(replicas[index] as string, [replica]);
  });
  return ends;
}

function endpointOf(draft: HostDraft, id: number): Endpoint {
  const country = places.findIndex((place) => place.country === places[draft.place]?.country);
  const { network, lastMileMs } = draft;
  return { id, ...unitVector(draft.latitude, draft.longitude), country, network, lastMileMs };
}
