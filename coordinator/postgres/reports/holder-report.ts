/** Organisations by handle or name: exact ones, near ones (pg_trgm), and what they hold. */
import type { Pool } from "pg";
import type { NearMatch, OrganisationReport } from "../../flows/who-answer.ts";
import { subnetsOfHolder } from "./subnet-report.ts";

interface HolderRow {
  holder_id: number;
  holder_key: string;
  name: string;
  handle: string | null;
  registry: string | null;
}

/** Subnets counted per organisation at most: a count over more would take longer than a page may. */
const countLimit = 20_000;

/** The holder of that handle or, in any case, name; where several share a name, the one with most subnets. */
export async function organisationNamed(
  pool: Pool,
  text: string,
  subnetLimit: number,
): Promise<OrganisationReport | null> {
  const { rows } = await pool.query<HolderRow>(
    `with named as (
       (select holder_id from holder where handle in ($1, upper($1)) limit 100)
       union
       (select holder_id from holder where name ilike $2 limit 100)
     )
     select holder_id, holder_key, name, handle, registry
     from named
     join holder using (holder_id)
     order by (handle is not null and upper(handle) = upper($1)) desc,
       (select count(*) from (
          select 1 from subnet where subnet.holder_id = named.holder_id and removed_in is null limit 1000
        ) counted) desc,
       holder_id
     limit 1`,
    [text, escapeLike(text)],
  );
  return rows[0] ? reportOf(pool, rows[0], subnetLimit) : null;
}

/** Organisations and crawlers whose names resemble the text, best first. */
export async function namesLike(pool: Pool, text: string, limit: number): Promise<NearMatch[]> {
  const { rows } = await pool.query<NearMatch>(
    `(select 'organisation' as type, name, handle, similarity(name, $1)::float8 as similarity
      from holder
      where name % $1
      order by similarity desc, holder_id
      limit $2)
     union all
     (select 'crawler', name, null, similarity(name, $1)::float8
      from crawler
      where name % $1
      order by 4 desc
      limit $2)
     order by similarity desc, name
     limit $2`,
    [text, limit],
  );
  return rows.map((row) => ({ ...row, similarity: Math.round(row.similarity * 100) / 100 }));
}

async function reportOf(pool: Pool, holder: HolderRow, subnetLimit: number): Promise<OrganisationReport> {
  const [list, byCrawler] = await Promise.all([
    subnetsOfHolder(pool, holder.holder_id, subnetLimit),
    countByCrawler(pool, holder.holder_id),
  ]);
  return {
    holderId: holder.holder_id,
    name: holder.name,
    handle: holder.handle,
    registry: holder.registry,
    holderKey: holder.holder_key,
    subnetCount: byCrawler.reduce((sum, line) => sum + line.subnets, 0),
    byCrawler,
    list,
  };
}

/** Own delegations only; null counts subnets that have none of their own. */
async function countByCrawler(pool: Pool, holderId: number): Promise<OrganisationReport["byCrawler"]> {
  const { rows } = await pool.query<{ crawler: string | null; subnets: number }>(
    `select c.name as crawler, count(*)::int as subnets
     from (select subnet_id from subnet where holder_id = $1 and removed_in is null limit ${countLimit}) held
     left join delegation d using (subnet_id)
     left join crawler c using (crawler_id)
     group by c.name
     order by subnets desc, crawler`,
    [holderId],
  );
  return rows;
}

/** The text itself for `ilike`: its wildcards stand for themselves. */
function escapeLike(text: string): string {
  return text.replace(/[\\%_]/g, (character) => `\\${character}`);
}
