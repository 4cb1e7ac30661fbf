/** An operator asks for a move: whether both crawlers can take part in one, and its row. */
import type { PoolClient } from "pg";
import { notify } from "#db/schema-channel";
import type { CrawlerMoveRecord, MoveRefusal, MoveStore } from "./move-ports.ts";
import { openMoveSteps } from "./moves.ts";

interface Party {
  crawler_id: number;
  name: string;
  state: string;
  public_key: string | null;
  is_shut_out: boolean;
  is_distrusted: boolean;
  is_moving: boolean;
}

export async function askMove(
  client: PoolClient,
  { name, otherName }: Parameters<MoveStore["ask"]>[0],
  now: Date,
): Promise<number | MoveRefusal> {
  if (name === otherName) return "same-crawler";
  const { rows } = await client.query<Party>(
    `select c.crawler_id, c.name, c.state, c.public_key,
       c.revoked_at is not null as is_shut_out,
       exists (
         select from crawler_trust t where t.crawler_id = c.crawler_id and t.distrusted_at is not null
       ) as is_distrusted,
       exists (
         select from crawler_move m
         where c.crawler_id in (m.crawler_id, m.other_crawler_id) and m.step = any($2)
       ) as is_moving
     from crawler c
     where c.name = any($1)
     order by c.crawler_id
     for update of c`,
    [[name, otherName], openMoveSteps],
  );
  const crawler = rows.find((row) => row.name === name);
  const other = rows.find((row) => row.name === otherName);
  if (!crawler) return "no-such-crawler";
  if (!other) return "no-such-host";
  const refusal = refusalOf(crawler, other);
  if (refusal !== null) return refusal;
  return await insert(client, crawler, other, now);
}

/** What is not believed on a host would be not believed there under another name, too. */
function refusalOf(crawler: Party, other: Party): MoveRefusal | null {
  if (crawler.is_shut_out || other.is_shut_out) return "shut-out";
  if (crawler.public_key === null || other.public_key === null) return "no-identity";
  if (crawler.is_moving || other.is_moving) return "moving";
  if (other.is_distrusted) return "distrusted";
  if (crawler.state === "offline") return "offline";
  return other.state === "offline" ? "host-offline" : null;
}

async function insert(client: PoolClient, crawler: Party, other: Party, now: Date): Promise<number> {
  const { rows } = await client.query<{ move_id: number }>(
    `with asked as (
       insert into crawler_move
         (crawler_id, other_crawler_id, name, other_name, from_public_key, to_public_key, asked_at, changed_at)
       values ($1, $2, $3, $4, $5, $6, $7, $7)
       returning move_id
     )
     select move_id, ${notify("nearcrawl_fleet", "''")} from asked`,
    [
      crawler.crawler_id,
      other.crawler_id,
      crawler.name,
      other.name,
      crawler.public_key,
      other.public_key,
      now,
    ],
  );
  return rows[0]!.move_id;
}

// A crawler becomes the other host's: its row gets that host's public key, ticket and keys, and keeps everything else
// (number, delegations, leases, spools, trust, what its operator grants). The key scopes are the crawler's own. The
// other crawler's row has no key any more, and hands its subnets over as one that was drained.

/** Both rows are locked. */
export async function bindToHost(
  client: PoolClient,
  { crawlerId, otherCrawlerId }: CrawlerMoveRecord,
  now: Date,
): Promise<void> {
  const both = [crawlerId, otherCrawlerId];
  await client.query(
    `update crawler_key k
     set scopes = coalesce((
       select own.scopes
       from crawler_key own
       where own.crawler_id = $1 and own.kept_at is not null and own.revoked_at is null
       order by own.key_id desc
       limit 1
     ), k.scopes)
     where k.crawler_id = $2 and k.revoked_at is null`,
    both,
  );
  await client.query("update crawler_key set revoked_at = $2 where crawler_id = $1 and revoked_at is null", [
    crawlerId,
    now,
  ]);
  await client.query(
    "update crawler_key set crawler_id = $1 where crawler_id = $2 and revoked_at is null",
    both,
  );
  const { rows } = await client.query<Folder>(
    "select public_key, ticket_hash, previous_ticket_hash, arrivals from crawler where crawler_id = $1",
    [otherCrawlerId],
  );
  const folder = rows[0]!;
  // In this order: a public key is one crawler's at a time.
  await client.query(retirement, [otherCrawlerId, now]);
  await client.query(
    `update crawler
     set public_key = $2, ticket_hash = $3, previous_ticket_hash = $4, arrivals = $5,
         rotation_asked_at = null, rotation_grace_hours = null
     where crawler_id = $1`,
    [
      crawlerId,
      folder.public_key,
      folder.ticket_hash,
      folder.previous_ticket_hash,
      JSON.stringify(folder.arrivals),
    ],
  );
}

interface Folder {
  public_key: string;
  ticket_hash: string | null;
  previous_ticket_hash: string | null;
  arrivals: unknown[];
}

const retirement = `
  update crawler c
  set public_key = null, ticket_hash = null, previous_ticket_hash = null, arrivals = '[]',
      rotation_asked_at = null, rotation_grace_hours = null,
      drain_subnets = case when draining_since is null
        then (select count(*) from delegation d where d.crawler_id = c.crawler_id)
        else drain_subnets end,
      draining_since = coalesce(draining_since, $2),
      drain_asked_by = 'operator',
      state = case when state = 'online' then 'draining' else state end
  where crawler_id = $1`;
