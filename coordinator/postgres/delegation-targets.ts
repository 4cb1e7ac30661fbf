/** What to probe for a subnet: one of its hosts, at the address that put the host there, with a URL of it. */
import type { Pool } from "pg";
import { asSubnetId, type SubnetId } from "#core/ids";
import type { WaitingSubnet } from "../flows/ports.ts";

/** Subnets without a delegation of their own that hold due URLs, by the time their first host was admitted. */
export async function waiting(
  pool: Pool,
  limit: number,
  except: readonly SubnetId[],
): Promise<WaitingSubnet[]> {
  const { rows } = await pool.query<TargetRow>(
    `with waiting as (
       select h.subnet_id, min(h.admitted_at) as since
       from frontier_host h
       where h.state = 'resolved'
         and h.due_at is not null
         and h.subnet_id <> all($2::int[])
         and not exists (select from delegation d where d.subnet_id = h.subnet_id)
       group by h.subnet_id
       order by since, h.subnet_id
       limit $1
     )
     select w.subnet_id, u.url, h.host, host(h.addresses[1]) as address
     from waiting w
     cross join lateral (
       select host_hash, host, addresses
       from frontier_host
       where subnet_id = w.subnet_id and state = 'resolved' and due_at is not null
       order by admitted_at, host_hash
       limit 1
     ) h
     cross join lateral (
       select url
       from frontier_url
       where host_hash = h.host_hash and state = 'due'
       order by depth, discovered_at, url_hash
       limit 1
     ) u
     order by w.since, w.subnet_id`,
    [limit, except],
  );
  return rows.map(targetOf);
}

/** For subnets that were delegated before, due or not: a URL that answered last time, if there is one. */
export async function targetsFor(pool: Pool, subnetIds: readonly SubnetId[]): Promise<WaitingSubnet[]> {
  const { rows } = await pool.query<TargetRow>(
    `select distinct on (given.subnet_id) given.subnet_id, u.url, h.host, host(h.addresses[1]) as address
     from unnest($1::int[]) as given (subnet_id)
     join frontier_host h on h.subnet_id = given.subnet_id and h.state = 'resolved'
     cross join lateral (
       select url, failures
       from frontier_url
       where host_hash = h.host_hash and state in ('due', 'leased')
       order by failures, depth, url_hash
       limit 1
     ) u
     order by given.subnet_id, u.failures, h.admitted_at, h.host_hash`,
    [subnetIds],
  );
  return rows.map(targetOf);
}

interface TargetRow {
  subnet_id: number;
  url: string;
  host: string;
  address: string;
}

function targetOf(row: TargetRow): WaitingSubnet {
  return { subnetId: asSubnetId(row.subnet_id), url: row.url, host: row.host, address: row.address };
}
