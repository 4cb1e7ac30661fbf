/** Writes a batch's changes to table page_change_inbox, in the transaction that stores its results. */
import { deflateRawSync } from "node:zlib";
import type { Pool, PoolClient } from "pg";
import { within } from "#core/timer-ms";
import { nameOf, type UrlAddress } from "#core/url-key";
import { asInteger, clean, columnsOf, inTransaction, rowsGiven } from "../../database/transaction.ts";
import { type ArrivedResult, type CountedResult, indexedPage } from "../batch/accepted-result.ts";
import type { ChangedLink } from "../batch/found-urls.ts";
import { fetchedAtOf, reasonOf, replacesPage } from "../batch/result-rows.ts";
import { asksPayment } from "../batch/visit.ts";
import { changesOfVisit, type SeenPage, statedChange, type Visit } from "./page-change.ts";
import { type PageText, type TextsElsewhere, textsOf } from "./page-text-reads.ts";
import { keptDifference, mostTextCharacters, textDifference } from "./text-difference.ts";

interface Known {
  readonly before: SeenPage | null;
  readonly wasRead: boolean;
}

/** Call it before the batch's pages and fetches are written. Call the returned function once their links are known. */
export async function watchChanges(
  client: PoolClient,
  { results, now }: { readonly results: readonly CountedResult[]; readonly now: Date },
  texts: ReadonlyMap<string, PageText> = new Map(),
): Promise<(links: LinkChanges) => Promise<void>> {
  const replaced = results.filter(({ result }) => replacesPage(result.outcome));
  const asTheyWere = results.filter(({ result, stated }) => stated && indexedPage(result) === null);
  const known = await knownPages(client, replaced);
  const differences = await differencesOf(client, replaced, { known, texts });
  return async (links) => {
    const added = countByPage(links.added);
    const removed = countByPage(links.removed);
    const rows = replaced.flatMap((counted) => {
      const name = nameOf(counted.key);
      const changes = {
        after: counted.links.length,
        added: added.get(name) ?? 0,
        removed: removed.get(name) ?? 0,
      };
      const visit = visitOf(counted, { known: known.get(name) ?? unknown, links: changes, now });
      return rowsOf(counted, visit, differences.get(name) ?? null);
    });
    rows.push(...asTheyWere.flatMap((counted) => statedRowsOf(counted, now)));
    if (rows.length > 0) await client.query(insertSql, given.valuesOf(rows));
    await forgetDifferences(client, results.filter(isSilentFromNow));
  };
}

const isSilentFromNow = ({ stated }: CountedResult): boolean =>
  stated?.maySearch === false && stated.before?.maySearch === true;

interface LinkChanges {
  readonly added: readonly ChangedLink[];
  readonly removed: readonly ChangedLink[];
}

const unknown: Known = { before: null, wasRead: false };

function countByPage(links: readonly ChangedLink[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const { from, fromUrl } of links) {
    const name = nameOf({ hostHash: from, urlHash: fromUrl });
    counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  return counts;
}

/** Keyed by `nameOf`. A URL without a visit had no page. A page absent for longer than retention.fetchDays counts as new. */
async function knownPages(
  client: PoolClient,
  replaced: readonly CountedResult[],
): Promise<Map<string, Known>> {
  const visited = replaced.filter(({ before }) => before.visits > 0).map(({ key }) => key);
  if (visited.length === 0) return new Map();
  const { rows } = await client.query<UrlAddress & Known>(
    `select given.host_hash as "hostHash", given.url_hash as "urlHash",
       case when p.url_hash is not null then
         json_build_object('digest', p.digest, 'simhash', p.simhash, 'title', p.title, 'words', p.words,
           'language', p.language, 'noindex', p.noindex)
       end as before,
       p.url_hash is not null or exists (
         select from page_fetch f
         where f.host_hash = given.host_hash and f.url_hash = given.url_hash and f.outcome = 'fetched'
       ) as "wasRead"
     from unnest($1::bigint[], $2::bigint[]) as given (host_hash, url_hash)
     left join page p using (host_hash, url_hash)`,
    [visited.map(({ hostHash }) => hostHash), visited.map(({ urlHash }) => urlHash)],
  );
  return new Map(rows.map((row) => [nameOf(row), row]));
}

function visitOf(
  counted: CountedResult,
  { known, links, now }: { readonly known: Known; readonly links: Visit["links"]; readonly now: Date },
): Visit {
  const { result, key, before } = counted;
  const { outcome } = result;
  const after = indexedPage(result);
  const isSilent = counted.stated?.maySearch === false;
  return {
    ...known,
    // Hides all of the page's text, including its former title.
    before: known.before && isSilent ? { ...known.before, title: "" } : known.before,
    url: key.url,
    seenAt: fetchedAtOf(result, now),
    status: "status" in outcome ? outcome.status : null,
    reason: after === null ? reasonOf(counted) : null,
    after: after && {
      ...{ ...after, title: clean(after.title), words: asInteger(after.words) },
      noindex: after.robots.noindex,
    },
    isFirst: before.visits === 0,
    location: outcome.type === "redirected" ? clean(outcome.location) : null,
    gaveUp: gaveUp(counted),
    stated: statedOf(counted),
    links,
  };
}

function statedOf({ stated }: CountedResult): Visit["stated"] {
  const { set = null, before = null } = stated ?? {};
  const isSame = before === null || before.set === set;
  const isSilent = stated?.maySearch === false || before?.maySearch === false;
  return { set, before: before?.set ?? null, isSame, isSilent };
}

function statedRowsOf(counted: CountedResult, now: Date) {
  const { key, result } = counted;
  const status = "status" in result.outcome ? result.outcome.status : null;
  const visit = { url: key.url, seenAt: fetchedAtOf(result, now), status, reason: null };
  return rowsFor(key, statedChange({ ...visit, stated: statedOf(counted) }));
}

/** Returns true when this visit, rather than an earlier one, gave up the URL. */
function gaveUp({ again, next, result, before: { failures } }: CountedResult): boolean {
  if (asksPayment(result.outcome)) return false;
  return next.isGone && (failures === 0 || !again(failures - 1).isGone);
}

const rowsOf = ({ key }: CountedResult, visit: Visit, difference: Buffer | null) =>
  rowsFor(key, changesOfVisit(visit), difference);

function rowsFor(
  { hostHash, urlHash }: UrlAddress,
  changes: ReturnType<typeof changesOfVisit>,
  difference: Buffer | null = null,
) {
  return changes.map((change) => ({
    ...{ hostHash, urlHash, ...change },
    difference: change.kind === "changed" ? difference : null,
  }));
}

/** An answer that takes longer is not waited for. */
const textsMs = 1000;

/**
 * The texts that only a search engine has, of pages that these results change. It is asked before the results' transaction,
 * and without its answer the changes have no difference.
 */
export async function replacedTexts(
  pool: Pool,
  results: readonly ArrivedResult[],
  elsewhere: TextsElsewhere,
): Promise<ReadonlyMap<string, PageText>> {
  const pages = results.flatMap(({ key, result }) => {
    const page = indexedPage(result);
    return page === null ? [] : [{ ...key, digest: page.digest }];
  });
  const { rows } = await pool.query<UrlAddress>(
    `select p.host_hash as "hostHash", p.url_hash as "urlHash"
     from unnest($1::bigint[], $2::bigint[], $3::text[]) as given (host_hash, url_hash, digest)
     join page p using (host_hash, url_hash)
     where p.digest <> given.digest`,
    columnsOf(pages, ["hostHash", "urlHash", "digest"]),
  );
  return (await within(textsMs, textsOf(pool, rows, elsewhere))) ?? new Map();
}

/** Returns the differences as stored, keyed by `nameOf`. Pages that are or were not to be searched have none. */
async function differencesOf(
  client: PoolClient,
  replaced: readonly CountedResult[],
  {
    known,
    texts,
  }: { readonly known: ReadonlyMap<string, Known>; readonly texts: ReadonlyMap<string, PageText> },
): Promise<Map<string, Buffer>> {
  const changed = new Map(
    replaced.flatMap((counted) => {
      const name = nameOf(counted.key);
      const [before, after] = [known.get(name)?.before, indexedPage(counted.result)];
      const isOther = before != null && after !== null && before.digest !== after.digest;
      return isOther && !statedOf(counted).isSilent ? [[name, { key: counted.key, after }] as const] : [];
    }),
  );
  if (changed.size === 0) return new Map();
  const keys = [...changed.values()].map(({ key }) => key);
  const old = await textsOf(client, keys, async (pages) =>
    pages.map((page) => texts.get(nameOf(page)) ?? null),
  );
  return new Map(
    [...old].flatMap(([name, before]) => {
      const { headings, description, text, snippetCharacters = null } = changed.get(name)!.after;
      const difference = textDifference(
        {
          ...{ ...before, text: before.text.slice(0, mostTextCharacters) },
          headings: before.headings.map((heading) => heading.text),
        },
        {
          ...{ description: clean(description), text: clean(text.slice(0, mostTextCharacters)) },
          ...{ headings: headings.map((heading) => clean(heading.text)), snippetCharacters },
        },
      );
      return difference === null ? [] : [[name, deflateRawSync(keptDifference(difference))] as const];
    }),
  );
}

/** Removes the stored texts of opted-out pages. `sql` selects rows `p` with a host's hash and a URL. */
export async function forgetDifferencesOf(
  pool: Pool | PoolClient,
  { sql, values }: { readonly sql: string; readonly values: readonly unknown[] },
): Promise<void> {
  for (const table of ["page_change_inbox", "page_change"])
    await pool.query(`update ${table} p set difference = null where ${sql} and difference is not null`, [
      ...values,
    ]);
}

/** Removes stored texts of pages that must no longer be searched. */
async function forgetDifferences(client: PoolClient, results: readonly CountedResult[]): Promise<void> {
  if (results.length === 0) return;
  await forgetDifferencesOf(client, {
    sql: "(p.host_hash, p.url_hash) in (select * from unnest($1::bigint[], $2::bigint[]))",
    values: [results.map(({ key }) => key.hostHash), results.map(({ key }) => key.urlHash)],
  });
}

/** Columns of a change, used by both inbox and feed. */
const given = rowsGiven(
  `host_hash bigint, url_hash bigint, url text, kind text, seen_at timestamptz, status smallint, reason text, language text,
   digest_before text, digest_after text, simhash_distance smallint, title_before text, title_after text,
   words_before int, words_after int, links_before int, links_after int, links_added int, links_removed int,
   location text, preference_set int, preference_set_before int, difference bytea`,
);

const insertSql = `insert into page_change_inbox (${given.names.join(", ")}) select * from ${given.sql()}`;

// From table page_change_inbox to page_change: one process at a time numbers changes, or removes the oldest. Each
// locks the row of change_feed until it commits.

/** Changes numbered per transaction, which takes a few milliseconds and does not disturb readers. */
const numberedAtOnce = 2000;

const removedAtOnce = 5000;

/** Numbers committed changes in the order in which they were written. Returns how many. */
export async function numberChanges(pool: Pool, now: Date, most: number = numberedAtOnce): Promise<number> {
  const { rows } = await pool.query<{ waits: boolean }>(
    "select exists (select from page_change_inbox) as waits",
  );
  if (!rows[0]!.waits) return 0;
  return await inTransaction(pool, async (client) => {
    const { last } = await lockFeed(client);
    const { rowCount } = await client.query(
      `with taken as (
         delete from page_change_inbox
         where inbox_number = any (array (
           select inbox_number from page_change_inbox order by inbox_number limit $1
         ))
         returning *
       )
       insert into page_change (change_number, noted_at, ${given.names.join(", ")})
       select $2::bigint + row_number() over (order by inbox_number), $3, ${given.names.join(", ")}
       from taken`,
      [most, last, now],
    );
    const numbered = rowCount ?? 0;
    await client.query("update change_feed set last_number = last_number + $1", [numbered]);
    return numbered;
  });
}

/** Removes a batch of changes noted before `before`. Returns how many. */
export async function removeOldChanges(
  pool: Pool,
  before: Date,
  most: number = removedAtOnce,
): Promise<number> {
  return await inTransaction(pool, async (client) => {
    const { removedThrough } = await lockFeed(client);
    // Stops at the first change to keep, so that numbers have no gap even if the clock was set back.
    const { rows } = await client.query<{ through: string | null }>(
      `select max(change_number) filter (where oldest_kept is null or change_number < oldest_kept) as through
       from (
         select change_number, min(change_number) filter (where noted_at >= $2) over () as oldest_kept
         from (
           select change_number, noted_at from page_change
           where change_number > $1
           order by change_number
           limit $3
         ) oldest
       ) marked`,
      [removedThrough, before, most],
    );
    const through = rows[0]?.through ?? null;
    if (through === null) return 0;
    const { rowCount } = await client.query("delete from page_change where change_number <= $1", [through]);
    await client.query("update change_feed set removed_through = $1", [through]);
    return rowCount ?? 0;
  });
}

/** When the lock is granted, the caller sees what its previous holder committed. */
async function lockFeed(client: PoolClient): Promise<{ last: string; removedThrough: string }> {
  const { rows } = await client.query<{ last: string; removedThrough: string }>(
    `select last_number as last, removed_through as "removedThrough" from change_feed for update`,
  );
  return rows[0]!;
}
