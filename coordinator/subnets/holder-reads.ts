/** Organisations by handle or name, however it is written, and what they hold. */
import type { Pool } from "pg";
import type { OrganisationReport } from "../who/who-answer.ts";
import { companyNameOf } from "./company-name.ts";
import { closeHolders } from "./near-names.ts";
import { subnetsOfHolder } from "./subnet-reads.ts";

interface HolderRow {
  holder_id: number;
  holder_key: string;
  name: string;
  handle: string | null;
  registry: string | null;
}

/** Subnets counted per organisation at most: a count over more would take longer than a page may. */
const countLimit = 20_000;

/** Candidates for a name that is written otherwise; those of one company stand close together. */
const closeCandidates = 50;

/**
 * The holder of that handle; else of that name in any case; else of a name that differs in legal form, accents
 * and punctuation only. Where several share it, the one with most subnets.
 */
export async function organisationNamed(
  pool: Pool,
  text: string,
  subnetLimit: number,
): Promise<OrganisationReport | null> {
  // Without a letter or digit no index helps, and no organisation is called so.
  if (!/[\p{L}\p{N}]/u.test(text)) return null;
  const holder =
    (await chosenHolder(pool, text, byHandleOrName(text))) ??
    (await chosenHolder(pool, text, await sameCompany(pool, text)));
  return holder && reportOf(pool, holder, subnetLimit);
}

interface HolderSearch {
  /** Gives holder_id; its parameter is $2. */
  readonly sql: string;
  readonly value: unknown;
}

function byHandleOrName(text: string): HolderSearch {
  const sql = `
    (select holder_id from holder where handle in ($1, upper($1)) limit 100)
    union
    (select holder_id from holder where name ilike $2 limit 100)`;
  return { sql, value: escapeLike(text) };
}

/** Holders whose normalised name is that of the text. */
async function sameCompany(pool: Pool, text: string): Promise<HolderSearch | null> {
  const asked = companyNameOf(text).text;
  if (asked === "") return null;
  const close = await closeHolders(pool, asked, closeCandidates);
  const same = close.filter(({ name }) => companyNameOf(name).text === asked);
  return { sql: "select unnest($2::integer[])", value: same.map(({ holderId }) => holderId) };
}

async function chosenHolder(
  pool: Pool,
  text: string,
  search: HolderSearch | null,
): Promise<HolderRow | null> {
  if (search === null) return null;
  const { rows } = await pool.query<HolderRow>(
    `with named (holder_id) as (${search.sql})
     select holder_id, holder_key, name, handle, registry
     from named
     join holder using (holder_id)
     order by (handle is not null and upper(handle) = upper($1)) desc,
       (select count(*) from (
          select 1 from subnet where subnet.holder_id = named.holder_id and removed_in is null limit 1000
        ) counted) desc,
       holder_id
     limit 1`,
    [text, search.value],
  );
  return rows[0] ?? null;
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
