/**
 * Table crawler_move. The public key in a crawler's row (table crawler) says who runs it. It changes in the same transaction
 * as the move's step. Lock order: crawlers by number, then the move.
 */
import type { Pool, PoolClient } from "pg";
import { gatherArrivals } from "#core/coalesce";
import type { CrawlerId } from "#core/ids";
import { tell } from "#db/schema-channel";
import { inTransaction } from "../../database/transaction.ts";
import { type MoveStep, openMoveSteps } from "./crawler.ts";

export type MoveStore = ReturnType<typeof createMoveStore>;

export function createMoveStore(pool: Pool) {
  const unmoved = gatherArrivals(
    async (arrivals: readonly Parameters<MoveStore["arrives"]>[0][]) => await haveNoMove(pool, arrivals),
  );
  return {
    ask: async (
      asked: { readonly name: string; readonly otherName: string },
      now: Date,
    ): Promise<number | MoveRefusal> =>
      await inTransaction(pool, async (client) => await askMove(client, asked, now)),

    async find(moveId: number): Promise<CrawlerMoveRecord | null> {
      return (await read(pool, "where move_id = $1", [moveId]))[0] ?? null;
    },

    /** Moves that can still fail, oldest first. */
    open: async (): Promise<CrawlerMoveRecord[]> =>
      await read(pool, "where step = any($1) order by move_id", [openMoveSteps]),

    /** Advances one step. Returns false if the move is not at `from`. */
    async advance(
      moveId: number,
      {
        from,
        to,
        packed,
      }: {
        readonly from: MoveStep;
        readonly to: MoveStep;
        readonly packed?: { readonly bytes: number; readonly digest: string; readonly signature: string };
      },
      now: Date,
    ): Promise<boolean> {
      const { rowCount } = await pool.query(
        `update crawler_move
         set step = $3, changed_at = $4,
             bytes = coalesce($5, bytes), digest = coalesce($6, digest), signature = coalesce($7, signature)
         where move_id = $1 and step = $2`,
        [moveId, from, to, now, packed?.bytes, packed?.digest, packed?.signature],
      );
      return rowCount === 1;
    },

    async progressed(moveId: number, sentBytes: number, now: Date): Promise<void> {
      await pool.query(
        "update crawler_move set sent_bytes = $2, changed_at = $3 where move_id = $1 and step = 'sending'",
        [moveId, sentBytes, now],
      );
    },

    /**
     * Binds the crawler's name to the other host's identity, keys and ticket. The other crawler's name is revoked and
     * drained. Returns false, without changes, if the move is no longer at `sending` or either identity has changed.
     */
    commit: async (moveId: number, now: Date): Promise<boolean> =>
      await inTransaction(pool, async (client) => await commit(client, moveId, now)),

    /** Returns false if it can no longer fail. */
    async fail(moveId: number, words: string, now: Date): Promise<boolean> {
      const failed = await failMoves(pool, { which: "move_id = $4", value: moveId, words, now });
      return failed.length === 1;
    },

    async failOpen(words: string, now: Date): Promise<number> {
      return (await failMoves(pool, { which: "$4", value: true, words, now })).length;
    },

    /**
     * On a crawler's arrival, its open moves fail and a committed one completes. `isOutdated` means that the identity no
     * longer belongs to the crawler. One transaction orders an arrival against a commit.
     */
    arrives: async (
      arrival: { readonly crawlerId: CrawlerId; readonly publicKey: string | null },
      now: Date,
    ): Promise<{ readonly isOutdated: boolean; readonly failed: readonly CrawlerMoveRecord[] }> => {
      if (await unmoved.ask(arrival)) return { isOutdated: false, failed: [] };
      return await inTransaction(pool, async (client) => await arrives(client, arrival, now));
    },

    /** The last move of this identity under this name, if it was committed. */
    async madeBy({
      publicKey,
      name,
    }: {
      readonly publicKey: string;
      readonly name: string;
    }): Promise<CrawlerMoveRecord | null> {
      const [move] = await read(
        pool,
        `where step in ('moved', 'running')
           and ((from_public_key = $1 and name = $2) or (to_public_key = $1 and other_name = $2))
         order by move_id desc
         limit 1`,
        [publicKey, name],
      );
      return move ?? null;
    },
  };
}

/** True for nearly all crawlers. A move requested later begins with the session that is now starting. */
async function haveNoMove(
  pool: Pool,
  arrivals: readonly Parameters<MoveStore["arrives"]>[0][],
): Promise<boolean[]> {
  const { rows } = await pool.query<{ crawler_id: number; public_key: string | null }>(
    `select c.crawler_id, c.public_key
     from crawler c
     where c.crawler_id = any($1)
       and not exists (
         select from crawler_move m
         where m.step not in ('running', 'failed') and c.crawler_id in (m.crawler_id, m.other_crawler_id)
       )`,
    [arrivals.map(({ crawlerId }) => crawlerId)],
  );
  const keyOf = new Map(rows.map((row) => [row.crawler_id, row.public_key]));
  return arrivals.map(({ crawlerId, publicKey }) => keyOf.get(crawlerId) === publicKey);
}

async function arrives(
  client: PoolClient,
  { crawlerId, publicKey }: Parameters<MoveStore["arrives"]>[0],
  now: Date,
): ReturnType<MoveStore["arrives"]> {
  const { rows } = await client.query<{ public_key: string | null }>(
    "select public_key from crawler where crawler_id = $1 for update",
    [crawlerId],
  );
  if (rows[0]?.public_key !== publicKey) return { isOutdated: true, failed: [] };
  const words = "it came back as a process that knows nothing of the move";
  const which = "$4 in (crawler_id, other_crawler_id)";
  const failed = await failMoves(client, { which, value: crawlerId, words, now });
  await client.query(
    `update crawler_move
     set step = 'running', changed_at = $3
     where crawler_id = $1 and to_public_key = $2 and step = 'moved'`,
    [crawlerId, publicKey, now],
  );
  return { isOutdated: false, failed };
}

async function commit(client: PoolClient, moveId: number, now: Date): Promise<boolean> {
  const [move] = await read(client, "where move_id = $1", [moveId]);
  if (!move) return false;
  const { rows: keys } = await client.query<{ crawler_id: number; public_key: string | null }>(
    "select crawler_id, public_key from crawler where crawler_id = any($1) order by crawler_id for update",
    [[move.crawlerId, move.otherCrawlerId]],
  );
  const keyOf = (id: number) => keys.find(({ crawler_id }) => crawler_id === id)?.public_key;
  const isAsItWas =
    keyOf(move.crawlerId) === move.fromPublicKey && keyOf(move.otherCrawlerId) === move.toPublicKey;
  if (!isAsItWas) return false;
  const { rowCount } = await client.query(
    `update crawler_move
     set step = 'moved', changed_at = $2, sent_bytes = bytes
     where move_id = $1 and step = 'sending'`,
    [moveId, now],
  );
  if (rowCount !== 1) return false;
  await bindToHost(client, move, now);
  return true;
}

/** `which` is a condition on $4. */
async function failMoves(
  client: Pool | PoolClient,
  failing: { readonly which: string; readonly value: unknown; readonly words: string; readonly now: Date },
): Promise<CrawlerMoveRecord[]> {
  const { which, value, words, now } = failing;
  const { rows } = await client.query<CrawlerMoveRecord>(
    `update crawler_move
     set step = 'failed', words = $1, changed_at = $2
     where step = any($3) and ${which}
     returning ${columns}`,
    [words.slice(0, 500), now, openMoveSteps, value],
  );
  return rows;
}

const columns = `move_id as "moveId", crawler_id as "crawlerId", other_crawler_id as "otherCrawlerId", name,
  other_name as "otherName", from_public_key as "fromPublicKey", to_public_key as "toPublicKey", step, words,
  changed_at as "changedAt", bytes::float8 as bytes, sent_bytes::float8 as "sentBytes"`;

async function read(
  client: Pool | PoolClient,
  which: string,
  values: readonly unknown[],
): Promise<CrawlerMoveRecord[]> {
  const { rows } = await client.query<CrawlerMoveRecord>(`select ${columns} from crawler_move ${which}`, [
    ...values,
  ]);
  return rows;
}

const mostListed = 500;

/** Latest first. `name` selects the moves of one crawler, on either side. */
export async function moveList(pool: Pool, name: string | null): Promise<MoveLine[]> {
  const { rows } = await pool.query<MoveLine>(
    `select move_id as "moveId", name, other_name as "otherName", step, words, asked_at as "askedAt",
       changed_at as "changedAt", bytes::float8 as bytes, sent_bytes::float8 as "sentBytes"
     from crawler_move
     where $1::text is null or $1 in (name, other_name)
     order by move_id desc
     limit ${mostListed}`,
    [name],
  );
  return rows;
}

export interface MoveLine
  extends Omit<CrawlerMoveRecord, "crawlerId" | "otherCrawlerId" | "fromPublicKey" | "toPublicKey"> {
  readonly askedAt: Date;
}

interface Party {
  crawler_id: number;
  name: string;
  state: string;
  public_key: string | null;
  is_shut_out: boolean;
  is_distrusted: boolean;
  is_moving: boolean;
}

async function askMove(
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

/** A distrusted crawler must not escape distrust by moving to another name. */
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
    `insert into crawler_move
       (crawler_id, other_crawler_id, name, other_name, from_public_key, to_public_key, asked_at, changed_at)
     values ($1, $2, $3, $4, $5, $6, $7, $7)
     returning move_id`,
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
  await tell(client, "nearcrawl_fleet", [""]);
  return rows[0]!.move_id;
}

// Gives a crawler's row the other host's public key, ticket and keys, and keeps everything else (number, delegations,
// leases, spools, trust, grants). Key scopes stay the crawler's own. The other crawler's row loses its keys and is
// drained.

async function bindToHost(
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
  // The order matters, because a public key belongs to one crawler at a time.
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

export interface CrawlerMoveRecord {
  readonly moveId: number;
  readonly crawlerId: CrawlerId;
  /** The crawler on whose host this crawler is to run. */
  readonly otherCrawlerId: CrawlerId;
  readonly name: string;
  readonly otherName: string;
  readonly fromPublicKey: string;
  readonly toPublicKey: string;
  readonly step: MoveStep;
  readonly words: string;
  readonly changedAt: Date;
  readonly bytes: number;
  readonly sentBytes: number;
}

export type MoveRefusal =
  | "same-crawler"
  | "no-such-crawler"
  | "no-such-host"
  | "offline"
  | "host-offline"
  | "no-identity"
  | "shut-out"
  | "distrusted"
  | "moving";
