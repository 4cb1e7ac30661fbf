/** The progress of an invitation, as far as the database knows it. */
import type { Pool } from "pg";
import { type InvitationFacts, type InvitationProgress, invitationProgress } from "./invitation-steps.ts";

interface FactsRow extends Omit<InvitationFacts, "isOpen"> {
  readonly is_open: boolean;
  readonly crawler_id: number | null;
}

/** How many of the crawler's hosts are searched for its first page. Its quarterly figures show it only a minute later. */
const hostsLooked = 200;

/** Returns null if there is no such invitation. */
export async function readInvitationProgress(
  pool: Pool,
  invitationId: number,
  now: Date,
): Promise<InvitationProgress | null> {
  const { rows } = await pool.query<FactsRow>(
    `select i.invitation_id as "invitationId", i.name,
       i.downloaded_at as "downloadedAt", i.redeemed_at as "joinedAt",
       i.revoked_at is null and i.kept_at is null and i.expires_at > $2 as is_open, i.revoked_at as "withdrawnAt",
       case when c.release_version is not null or c.state = 'online' then coalesce(c.connected_at, c.last_seen_at)
       end as "ranAt",
       c.state = 'online' as "isConnected", c.revoked_at as "removedAt", c.crawler_id,
       case when c.offline_code is distinct from 'joined' then c.offline_reason end as "awayBecause",
       (
         -- The quarter of an hour in which it was may have begun before the crawler came.
         select greatest(min(f.quarter), i.redeemed_at, c.connected_at)
         from crawler_figures f
         where f.crawler_id = c.crawler_id and f.fetches > 0
         having count(*) > 0
       ) as "firstPageBy",
       exists (select from delegation d where d.crawler_id = c.crawler_id) as "hasSubnets"
     from invitation i
     left join crawler c using (crawler_id)
     where i.invitation_id = $1`,
    [invitationId, now],
  );
  const [row] = rows;
  if (row === undefined) return null;
  const { is_open: isOpen, crawler_id: crawlerId, ...facts } = row;
  const { joinedAt } = facts;
  const first = crawlerId === null || joinedAt === null ? null : await firstPageOf(pool, crawlerId, joinedAt);
  return invitationProgress({ ...facts, firstPageBy: first ?? facts.firstPageBy, isOpen });
}

async function firstPageOf(pool: Pool, crawlerId: number, since: Date): Promise<Date | null> {
  const { rows } = await pool.query<{ first: Date | null }>(
    `select min(f.fetched_at) as first
     from (
       select h.host_hash
       from delegation d
       join frontier_host h on h.subnet_id = d.subnet_id
       where d.crawler_id = $1
       limit ${hostsLooked}
     ) own
     join page_fetch f on f.host_hash = own.host_hash and f.fetched_at >= $2
     where f.crawler_id = $1 and f.outcome in ('fetched', 'unchanged')`,
    [crawlerId, since],
  );
  return rows[0]!.first;
}
