/** An operator asks for a move: whether both crawlers can take part in one, and its row. */
import type { PoolClient } from "pg";
import { notify } from "#db/schema-channel";
import type { MoveRefusal, MoveStore } from "./move-ports.ts";
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
