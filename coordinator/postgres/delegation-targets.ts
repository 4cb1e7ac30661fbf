/**
 * What to probe for a subnet: one of its hosts, at the address that put the host there, with a URL of it. A host
 * with a finer delegation (its name resolves differently by place, or it lies in a part that measures apart)
 * does not stand for the whole subnet, unless there is no other.
 */
import type { Pool } from "pg";
import { asSubnetId, type HostHash, type SubnetId } from "#core/ids";
import type { WaitingSubnet } from "../flows/delegation-ports.ts";

/** Of the subnets of one holder that wait, so many are named: the others come when these are decided. */
const perHolder = 8;
/** Due URLs are counted up to this: more would change nothing. */
const countedUrls = 1000;

/** Subnets without a delegation of their own that hold due URLs, by the time their first host was admitted. */
export async function waiting(
  pool: Pool,
  limit: number,
  except: readonly SubnetId[],
): Promise<WaitingSubnet[]> {
  const { rows } = await pool.query<TargetRow>(
    `with open as (
       select h.subnet_id, min(h.admitted_at) as since
       from frontier_host h
       where h.state = 'resolved'
         and h.due_at is not null
         and h.subnet_id <> all($2::int[])
         and not exists (select from delegation d where d.subnet_id = h.subnet_id)
       group by h.subnet_id
     ), placed as (
       select open.subnet_id, open.since,
         row_number() over (
           partition by coalesce(s.holder_id, -open.subnet_id) order by open.since, open.subnet_id
         ) as place
       from open
       left join subnet s on s.subnet_id = open.subnet_id
     ), waiting as (
       select subnet_id, since
       from placed
       where place <= ${perHolder}
       order by since, subnet_id
       limit $1
     )
     select w.subnet_id, u.url, h.host, host(h.addresses[1]) as address, due.urls as due_urls
     from waiting w
     cross join lateral (
       select host_hash, host, addresses
       from frontier_host
       where subnet_id = w.subnet_id and state = 'resolved' and due_at is not null
       order by finer_id is not null, admitted_at, host_hash
       limit 1
     ) h
     cross join lateral (
       select url
       from frontier_url
       where host_hash = h.host_hash and state = 'due'
       order by depth, discovered_at, url_hash
       limit 1
     ) u
     cross join lateral (
       select count(*)::int as urls
       from (
         select
         from frontier_host f
         join frontier_url fu on fu.host_hash = f.host_hash and fu.state = 'due'
         where f.subnet_id = w.subnet_id
           and f.state = 'resolved'
           and f.due_at is not null
           and f.finer_id is null
         limit ${countedUrls}
       ) counted
     ) due
     order by w.since, w.subnet_id`,
    [limit, except],
  );
  return rows.map((row) => ({ ...targetOf(row), dueUrls: row.due_urls ?? 0 }));
}

/** For subnets that were delegated before, due or not: a URL that answered last time, if there is one. */
export async function targetsFor(pool: Pool, subnetIds: readonly SubnetId[]): Promise<WaitingSubnet[]> {
  const { rows } = await pool.query<TargetRow>(
    `select distinct on (given.subnet_id) given.subnet_id, u.url, h.host, host(h.addresses[1]) as address
     from unnest($1::int[]) as given (subnet_id)
     join frontier_host h
       on h.subnet_id = given.subnet_id and h.state = 'resolved' and h.opt_out_id is null
     cross join lateral (
       select url, failures
       from frontier_url
       where host_hash = h.host_hash and state in ('due', 'leased')
       order by failures, depth, url_hash
       limit 1
     ) u
     order by given.subnet_id, h.finer_id is not null, u.failures, h.admitted_at, h.host_hash`,
    [subnetIds],
  );
  return rows.map(targetOf);
}

/** The subnets of these hosts; what is not in the frontier, or has no address yet, lies in none. */
export async function subnetsOfHosts(pool: Pool, hosts: readonly HostHash[]): Promise<SubnetId[]> {
  if (hosts.length === 0) return [];
  const { rows } = await pool.query<{ subnet_id: number }>(
    `select distinct subnet_id
     from frontier_host
     where host_hash = any($1::bigint[]) and state = 'resolved' and subnet_id is not null`,
    [hosts],
  );
  return rows.map((row) => asSubnetId(row.subnet_id));
}

interface TargetRow {
  subnet_id: number;
  due_urls?: number;
  url: string;
  host: string;
  address: string;
}

function targetOf(row: TargetRow): WaitingSubnet {
  return { subnetId: asSubnetId(row.subnet_id), url: row.url, host: row.host, address: row.address };
}
