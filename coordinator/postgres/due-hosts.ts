/**
 * Which hosts a crawler gets next: those of its subnets that have no finer delegation, and those of its finer
 * delegations, longest due first.
 *
 * Of everything that is due, the front is looked at in the order of an index; a crawler with many subnets finds
 * enough there. Where it does not (it has few subnets, or has kept up with them), its subnets are gone through.
 */
import type { PoolClient } from "pg";
import type { HostHash } from "#core/ids";
import type { FrontierStore } from "../flows/ports.ts";
import { addressKeysOf, isFreeFor, maxAddresses } from "./address-turns.ts";

export type LeaseRequest = Parameters<FrontierStore["leaseHosts"]>[0];

export interface HostRow {
  host_hash: HostHash;
  host: string;
  due_at: Date;
  addresses: string[];
  /** What has to be the crawler's turn (address-turns.ts). */
  address_keys: string[];
  /** The pace that the last crawler left; null: nobody has told. */
  crawl_delay_ms: number | null;
  back_off_ms: number | null;
  backed_off_at: Date | null;
  usual_ms: number | null;
}

/** Most leases in one message (messages.ts). */
const maxLeases = 1_000;

/** Hosts at the front that are looked at: of everybody's, so that a crawler with a hundredth of the work finds 20. */
const front = 2_000;

/** Locks them; hosts that another coordinator has in hand are passed over. */
export async function lockDueHosts(client: PoolClient, request: LeaseRequest): Promise<HostRow[]> {
  const wanted = Math.min(request.hosts, maxLeases);
  const early = await lockBy(client, atFront, request);
  const ofSubnets = early.length === wanted ? early : await lockBy(client, bySubnets, request);
  // Most often none, which an index tells.
  const finer = await lockBy(client, byFiner, request);
  if (finer.length === 0) return ofSubnets;
  const longestDueFirst = [...ofSubnets, ...finer].sort((a, b) => a.due_at.getTime() - b.due_at.getTime());
  return longestDueFirst.slice(0, wanted);
}

const isOpen = (host: string) => `${host}.state = 'resolved'
       and ${host}.lease_id is null
       and ${host}.due_at <= $2
       and ${host}.not_before <= $2`;

const atFront = {
  from: `frontier_host h`,
  where: `h.finer_id is null
       and h.host_hash = any(array(
         select first.host_hash
         from (
           select f.host_hash, f.subnet_id, f.due_at, f.addresses, f.seen_addresses
           from frontier_host f
           where ${isOpen("f")} and f.finer_id is null
           order by f.due_at, f.host_hash
           limit ${front}
         ) first
         join delegation d on d.subnet_id = first.subnet_id
         where d.crawler_id = $1 and ${isFreeFor("first")}
         order by first.due_at, first.host_hash
         limit $3
       ))`,
  order: "h.due_at, h.host_hash",
};

/** The sum hides the order from the planner, which would go through everybody's hosts once more. */
const bySubnets = {
  from: "frontier_host h join delegation d on d.subnet_id = h.subnet_id and h.finer_id is null",
  where: "d.crawler_id = $1",
  order: "h.due_at + interval '0', h.host_hash",
};

const byFiner = {
  from: "frontier_host h join finer_delegation d on d.finer_id = h.finer_id",
  where: "d.crawler_id = $1",
  order: "h.due_at, h.host_hash",
};

async function lockBy(
  client: PoolClient,
  way: { readonly from: string; readonly where: string; readonly order: string },
  request: LeaseRequest,
): Promise<HostRow[]> {
  const { rows } = await client.query<HostRow>(
    `select h.host_hash, h.host, h.due_at, h.crawl_delay_ms, h.back_off_ms, h.backed_off_at, h.usual_ms,
       array(select host(a) from unnest(h.addresses[1:${maxAddresses}]) a) as addresses,
       ${addressKeysOf("h")}::text[] as address_keys
     from ${way.from}
     where ${way.where}
       and ${isOpen("h")}
       and ${isFreeFor("h")}
     order by ${way.order}
     limit $3
     for update of h skip locked`,
    [request.crawlerId, request.now, Math.min(request.hosts, maxLeases)],
  );
  return rows;
}
