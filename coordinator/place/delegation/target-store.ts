/**
 * Chooses what to probe in a subnet: one of its hosts, at the address that placed it there, with a URL. A host with a
 * finer delegation represents its subnet only if there is no other. With domain sets, hosts that some crawler holds
 * come first.
 */
import type { Pool, PoolClient } from "pg";
import type { CrawlerId, SubnetId } from "#core/ids";
import { readRows } from "../../database/cached-read.ts";
import { columnsOf } from "../../database/transaction.ts";
import type { HostToHold } from "../domain-sets/domain-set.ts";
import { heldByOneSql, type Partition } from "../domain-sets/partition.ts";
import type { DelegationMove, WaitingSubnet } from "./delegation.ts";
import { isFromHere } from "./round-store.ts";

/** Maximum waiting subnets named per holder. The others follow when these are decided. */
const perHolder = 8;

/** Maximum count of due URLs. Counting more would change nothing. */
const countedUrls = 1000;

/** Maximum hosts by which a subnet's candidates are distinguished. Held ones come first. */
const hostsNamed = 200;

/** Undelegated subnets with due URLs, by the time their first host was admitted. */
export async function waiting(
  pool: Pool,
  limit: number,
  except: readonly SubnetId[],
  somebody: readonly Partition[],
): Promise<WaitingSubnet[]> {
  const held = heldFirst(somebody, 3);
  const rows = await readRows<TargetRow>(
    pool,
    `with open as (
       select h.subnet_id, min(h.admitted_at) as since
       from frontier_host h
       where h.state = 'resolved'
         and h.due_at is not null
         and h.subnet_id <> all($2::int[])
         and not exists (select from delegation d where d.subnet_id = h.subnet_id)
       group by h.subnet_id
     ), held as (
       select open.subnet_id, open.since, coalesce(s.holder_id, -open.subnet_id) as holder
       from open
       left join subnet s on s.subnet_id = open.subnet_id
     ), placed as (
       select held.*, row_number() over (partition by holder order by since, subnet_id) as place
       from held
     ), waiting as (
       select subnet_id, since, holder
       from placed
       where place <= ${perHolder}
       order by since, subnet_id
       limit $1
     )
     select w.subnet_id as "subnetId", u.url, h.host, host(h.addresses[1]) as address, due.urls as "dueUrls",
       ${held.hostsOf("w")}
     from waiting w
     cross join lateral (
       select host_hash, host, addresses
       from frontier_host h
       where subnet_id = w.subnet_id and state = 'resolved' and due_at is not null
       order by ${held.order} finer_id is not null, admitted_at, host_hash
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
    [limit, except, ...held.values],
  );
  return rows.map(targetOf);
}

/** A target in formerly delegated subnets, due or not, preferably a URL that answered last time. */
export async function targetsFor(
  pool: Pool,
  subnetIds: readonly SubnetId[],
  somebody: readonly Partition[],
): Promise<WaitingSubnet[]> {
  const held = heldFirst(somebody, 2);
  const rows = await readRows<TargetRow>(
    pool,
    `select found.subnet_id as "subnetId", found.url, found.host, found.address, ${held.hostsOf("found")}
     from (
       select distinct on (given.subnet_id) given.subnet_id, u.url, h.host, host(h.addresses[1]) as address
       from unnest($1::int[]) as given (subnet_id)
       join frontier_host h
         on h.subnet_id = given.subnet_id and h.state = 'resolved' and h.opt_out_id is null
       cross join lateral (
         select url, failures
         from frontier_url
         where host_hash = h.host_hash and state = 'due'
         order by failures, depth, url_hash
         limit 1
       ) u
       order by given.subnet_id, ${held.order} h.finer_id is not null, u.failures, h.admitted_at, h.host_hash
     ) found
     order by found.subnet_id`,
    [subnetIds, ...held.values],
  );
  return rows.map(targetOf);
}

/** A row as read. If no crawler has domain sets, no hosts are named. */
type TargetRow = Omit<WaitingSubnet, "hosts"> & { readonly hosts: readonly HostToHold[] | null };

/** SQL parts over hosts `h`. If no crawler has domain sets, they are neutral. */
function heldFirst(somebody: readonly Partition[], first: number) {
  if (somebody.length === 0) return { order: "", values: [], hostsOf: () => "null::jsonb as hosts" };
  const { condition, values } = heldByOneSql(somebody, "h", first);
  const hostsOf = (subnets: string) => `(
         select jsonb_agg(jsonb_build_object('host', named.host, 'language', named.language))
         from (
           select h.host, h.language
           from frontier_host h
           where h.subnet_id = ${subnets}.subnet_id and h.state = 'resolved' and h.due_at is not null
           order by ${condition} desc, h.admitted_at, h.host_hash
           limit ${hostsNamed}
         ) named
       ) as hosts`;
  return { order: `${condition} desc,`, values, hostsOf };
}

function targetOf({ hosts, ...target }: TargetRow): WaitingSubnet {
  return hosts === null ? target : { ...target, hosts };
}

// Tables delegation and delegation_history: subnets that change crawlers without a round.

/**
 * Changes a subnet's crawler. The former one becomes the runner-up with its RTT, unless it has left. The deciding round
 * stays, since its probes are still the best knowledge.
 */
export async function move(
  client: PoolClient,
  moves: readonly DelegationMove[],
  now: Date,
): Promise<SubnetId[]> {
  await client.query("select from delegation where subnet_id = any($1) order by subnet_id for update", [
    moves.map((one) => one.subnetId),
  ]);
  const { rows } = await client.query<{ subnet_id: SubnetId }>(
    `with moved as (
       update delegation d
       set crawler_id = given.to_id,
           cause = given.cause,
           measured = given.rtt_ms is not null,
           rtt_ms = given.rtt_ms,
           runner_up_id = case when given.cause = 'crawler-left' then null else given.from_id end,
           runner_up_rtt_ms = case when given.cause = 'crawler-left' then null else d.rtt_ms end,
           delegated_at = $7
       from unnest($1::int[], $2::int[], $3::int[], $4::text[], $5::text[], $6::real[])
         as given (subnet_id, from_id, to_id, cause, reason, rtt_ms)
       where d.subnet_id = given.subnet_id
         and d.crawler_id = given.from_id
         and given.to_id <> given.from_id
       returning d.subnet_id, given.from_id, given.to_id, given.cause, d.round_id, given.reason
     )
     insert into delegation_history (subnet_id, changed_at, from_crawler_id, to_crawler_id, cause, round_id, reason)
     select subnet_id, $7, from_id, to_id, cause, round_id, reason
     from moved
     returning subnet_id`,
    [...columnsOf(moves, ["subnetId", "from", "to", "cause", "reason", "rttMs"]), now],
  );
  return rows.map((row) => row.subnet_id);
}

/** Maximum subnets lost by a crawler that are considered, the latest first. */
const mostFormer = 200_000;

/** Subnets taken from a crawler because it left or was drained, with its RTT in the round that still decides them. */
export const formerSubnets = async (
  pool: Pool,
  crawlerId: CrawlerId,
  since: Date,
): Promise<{ readonly subnetId: SubnetId; readonly rttMs: number | null }[]> =>
  await readRows(
    pool,
    `select d.subnet_id as "subnetId", min(p.rtt_ms) as "rttMs"
     from (
       select subnet_id
       from delegation_history
       where from_crawler_id = $1 and changed_at >= $2 and cause in ('crawler-left', 'drained')
       order by changed_at desc
       limit ${mostFormer}
     ) had
     join delegation d on d.subnet_id = had.subnet_id and d.crawler_id <> $1
     left join probe_round r on r.round_id = d.round_id
     left join probe p on p.round_id = r.round_id
       and p.crawler_id = $1
       and p.outcome = 'measured'
       and p.method = coalesce(r.method, p.method)
       and ${isFromHere("p", "r")}
     group by d.subnet_id
     order by d.subnet_id`,
    [crawlerId, since],
  );
