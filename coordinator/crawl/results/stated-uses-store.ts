/**
 * Table preference_set: distinct lists of what sites state about their pages' uses, and which page has which list.
 * Written in the transaction that stores the results.
 */
import { createHash } from "node:crypto";
import type { Pool, PoolClient } from "pg";
import type { HostHash } from "#core/ids";
import { nameOf, type UrlAddress } from "#core/url-key";
import { maySearch, type StatedPreference, type UseAnswers, useAnswers } from "#protocol/preferences";
import { columnsOf } from "../../database/transaction.ts";
import { type CountedResult, indexedPage } from "../batch/accepted-result.ts";
import { fetchedAtOf, replacesPage } from "../batch/result-rows.ts";
import {
  countAnswers,
  listOfStatements,
  type StatedCount,
  type StatedUses,
  statedOfUnchanged,
} from "../batch/stated-uses.ts";

interface PageBefore extends UrlAddress {
  readonly set: number | null;
  readonly statements: readonly StatedPreference[] | null;
}

/** Adds what sites state to the results for their pages. */
export async function hearStatements(
  client: PoolClient,
  counted: readonly CountedResult[],
  now: Date,
): Promise<readonly CountedResult[]> {
  const speaking = counted.filter(speaksOfPage);
  const before = await setsOfPages(
    client,
    speaking.filter((one) => one.before.visits > 0).map(({ key }) => key),
  );
  const heard = new Map(
    speaking.map((one) => {
      const known = before.get(nameOf(one.key));
      const stated = one.result.preferences ?? [];
      const all =
        indexedPage(one.result) === null ? statedOfUnchanged(stated, known?.statements ?? []) : stated;
      return [one, { known, statements: listOfStatements(all) }];
    }),
  );
  const sets = await numbersOf(
    client,
    [...heard.values()].map(({ statements }) => statements),
    now,
  );
  const left = [...heard.values()].flatMap(({ known, statements }) =>
    known?.set == null || known.set === sets.get(digestOf(statements)) ? [] : [known.set],
  );
  await noteUsedSets(client, left, now);
  return counted.map((one) => {
    const found = heard.get(one);
    if (found === undefined) return one;
    const { known, statements } = found;
    const stated = {
      set: statements.length === 0 ? null : sets.get(digestOf(statements))!,
      maySearch: maySearch(statements),
      before: known === undefined ? null : { set: known.set, maySearch: maySearch(known.statements ?? []) },
    };
    return { ...one, stated };
  });
}

/** Returns true for pages read or unchanged, and for any outcome that leaves the page but forbids searching it. */
function speaksOfPage({ result }: CountedResult): boolean {
  const { outcome, preferences = [] } = result;
  if (outcome.type === "unchanged" || indexedPage(result) !== null) return true;
  return !replacesPage(outcome) && !maySearch(preferences);
}

/** Reads the lists of pages in the index. */
async function setsOfPages(
  client: PoolClient,
  pages: readonly UrlAddress[],
): Promise<ReadonlyMap<string, PageBefore>> {
  if (pages.length === 0) return new Map();
  const { rows } = await client.query<PageBefore>(
    `select p.host_hash as "hostHash", p.url_hash as "urlHash", p.preference_set as set, s.stated as statements
     from unnest($1::bigint[], $2::bigint[]) as given (host_hash, url_hash)
     join page p on p.host_hash = given.host_hash and p.url_hash = given.url_hash
     left join preference_set s on s.set_id = p.preference_set`,
    columnsOf(pages, ["hostHash", "urlHash"]),
  );
  return new Map(rows.map((row) => [nameOf(row), row]));
}

const digestOf = (statements: readonly StatedPreference[]): string =>
  createHash("sha256").update(JSON.stringify(statements)).digest("hex").slice(0, 32);

/** How long the recorded use of a list stays valid before it is recorded again. */
const freshMs = 86_400_000;

/** Returns list numbers by digest. Inserts in sorted order to avoid deadlocks. */
async function numbersOf(
  client: PoolClient,
  lists: readonly (readonly StatedPreference[])[],
  now: Date,
): Promise<ReadonlyMap<string, number>> {
  const wanted = new Map(
    lists.filter((list) => list.length > 0).map((statements) => [digestOf(statements), statements]),
  );
  if (wanted.size === 0) return new Map();
  const known = await client.query<{ digest: string; set: number }>(
    `select given.digest, s.set_id as set
     from unnest($1::text[]) as given (digest)
     join preference_set s on s.digest = decode(given.digest, 'hex') and s.used_at > $2`,
    [[...wanted.keys()], new Date(now.getTime() - freshMs)],
  );
  const numbers = new Map(known.rows.map(({ digest, set }) => [digest, set]));
  const missing = [...wanted].filter(([digest]) => !numbers.has(digest));
  if (missing.length === 0) return numbers;
  const { rows } = await client.query<{ digest: string; set: number }>(
    `insert into preference_set (digest, stated, answers, used_at)
     select decode(given.digest, 'hex'), given.stated::jsonb, given.answers::jsonb, $4
     from unnest($1::text[], $2::text[], $3::text[]) as given (digest, stated, answers)
     order by given.digest
     on conflict (digest) do update set used_at = greatest(preference_set.used_at, excluded.used_at)
     returning encode(digest, 'hex') as digest, set_id as set`,
    [
      missing.map(([digest]) => digest),
      missing.map(([, statements]) => JSON.stringify(statements)),
      missing.map(([, statements]) => JSON.stringify(useAnswers(statements))),
      now,
    ],
  );
  for (const { digest, set } of rows) numbers.set(digest, set);
  return numbers;
}

/** Whether the page stays in the index but must no longer be searched. */
export const fallsSilent = ({ result, stated }: CountedResult): boolean =>
  indexedPage(result) === null && stated?.before?.maySearch === true && !stated.maySearch;

/** Updates the statements of unchanged pages, and removes the words of pages that must no longer be searched. */
export async function writeStatements(
  client: PoolClient,
  { results, now }: { readonly results: readonly CountedResult[]; readonly now: Date },
): Promise<void> {
  const changed = results.filter(
    ({ result, stated }) =>
      indexedPage(result) === null && stated?.before != null && stated.before.set !== stated.set,
  );
  if (changed.length === 0) return;
  await client.query(
    `update page p
     set preference_set = given.set, preferences_since = case when given.set is not null then given.since end
     from unnest($1::bigint[], $2::bigint[], $3::int[], $4::timestamptz[]) as given (host_hash, url_hash, set, since)
     where p.host_hash = given.host_hash and p.url_hash = given.url_hash`,
    columnsOf(
      changed.map(({ key, result, stated }) => ({
        ...key,
        set: stated?.set ?? null,
        since: fetchedAtOf(result, now),
      })),
      ["hostHash", "urlHash", "set", "since"],
    ),
  );
  await silence(client, changed.filter(fallsSilent));
}

/** Keeps only the page's row. The next visit writes its links again. */
async function silence(client: PoolClient, results: readonly CountedResult[]): Promise<void> {
  if (results.length === 0) return;
  const keys = columnsOf(
    results.map(({ key }) => key),
    ["hostHash", "urlHash"],
  );
  await client.query(
    `update page p
     set noindex = true, title = '', simhash = repeat('0', 16), text_group = null, duplicate_host_hash = null,
         duplicate_url_hash = null
     from unnest($1::bigint[], $2::bigint[]) as given (host_hash, url_hash)
     where p.host_hash = given.host_hash and p.url_hash = given.url_hash`,
    keys,
  );
  await client.query(
    `update document d
     set description = '', headings = '[]', structured = null, text = '', unquoted = null
     from unnest($1::bigint[], $2::bigint[]) as given (host_hash, url_hash)
     where d.host_hash = given.host_hash and d.url_hash = given.url_hash`,
    keys,
  );
  await client.query(
    `update out_link o
     set anchors = repeat(e'\\n', greatest(0, cardinality(o.urls) - 1)), digest = o.digest # 1
     from unnest($1::bigint[], $2::bigint[]) as given (host_hash, url_hash)
     where o.host_hash = given.host_hash and o.url_hash = given.url_hash`,
    keys,
  );
}

/** Returns null if nothing is stated or the index has no such page. */
export async function statedUsesOf(pool: Pool, page: UrlAddress): Promise<StatedUses | null> {
  const { rows } = await pool.query<
    Pick<StatedUses, "answers" | "statements"> & { since: Date; confirmed: Date }
  >(
    `select s.answers, s.stated as statements, p.preferences_since as since,
       greatest(p.fetched_at, (
         select max(f.fetched_at)
         from page_fetch f
         where f.host_hash = p.host_hash and f.url_hash = p.url_hash and f.outcome in ('fetched', 'unchanged')
       )) as confirmed
     from page p
     join preference_set s on s.set_id = p.preference_set
     where p.host_hash = $1 and p.url_hash = $2`,
    [page.hostHash, page.urlHash],
  );
  const row = rows[0];
  if (row === undefined) return null;
  const { answers, statements, since, confirmed } = row;
  return { answers, statements, since: since.toISOString(), confirmedAt: confirmed.toISOString() };
}

/** Maximum pages of a host that are read, which takes 0.1 s. */
const mostPagesOfHost = 10_000;

export async function statedOfHost(
  pool: Pool,
  hostHash: HostHash,
): Promise<{ readonly pages: number; readonly more: boolean; readonly counts: readonly StatedCount[] }> {
  const { rows } = await pool.query<{ answers: UseAnswers | null; pages: number }>(
    `select s.answers, counted.pages
     from (
       select preference_set, count(*)::int as pages
       from (select preference_set from page where host_hash = $1 limit ${mostPagesOfHost + 1}) looked
       group by preference_set
     ) counted
     left join preference_set s on s.set_id = counted.preference_set`,
    [hostHash],
  );
  const pages = rows.reduce((sum, row) => sum + row.pages, 0);
  const counts = countAnswers(rows.map((row) => ({ answers: row.answers ?? {}, pages: row.pages })));
  return { pages: Math.min(pages, mostPagesOfHost), more: pages > mostPagesOfHost, counts };
}

/** Lists that pages had until now stay for the change that names them. Rows that are locked are being recorded by others already. */
async function noteUsedSets(client: PoolClient, sets: readonly number[], now: Date): Promise<void> {
  if (sets.length === 0) return;
  await client.query(
    `update preference_set
     set used_at = $2
     where set_id in (
       select set_id from preference_set where set_id = any($1::int[]) and used_at < $3 for update skip locked
     )`,
    [sets, now, new Date(now.getTime() - freshMs)],
  );
}

/** Removes lists that no page has and none had since `before`. Returns how many. */
export async function forgetUnusedSets(pool: Pool, before: Date, most: number): Promise<number> {
  const { rowCount } = await pool.query(
    `delete from preference_set
     where set_id in (
       select s.set_id
       from preference_set s
       where s.used_at < $1 and not exists (select from page p where p.preference_set = s.set_id)
       limit $2
     )`,
    [before, most],
  );
  return rowCount ?? 0;
}
