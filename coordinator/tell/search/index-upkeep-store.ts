/**
 * Keeps fresh what search needs besides the pages, by walking through them in key order, one batch at a time: how
 * many other hosts link to each, which belong to the first tier, and the words people use. One coordinator at a time
 * walks; one that is killed leaves the rest of its batch to the next. A round through a million pages takes hours,
 * and then the next begins.
 */
import type { Pool, PoolClient } from "pg";
import type { HostHash, UrlHash } from "#core/ids";
import { isNofollow, linksBeyond } from "../../crawl/batch/link-sql.ts";
import { noteUsedSets } from "../../crawl/results/stated-uses-store.ts";
import { columnsOf, inTransaction } from "../../database/transaction.ts";
import { deletesOf } from "./edit-distance.ts";
import { leastStandingOf, pageWords, type Standing, standingOf } from "./ranking.ts";

/** Pages per batch: a transaction of tens of milliseconds. */
const batchPages = 200;

/** The next round starts at the earliest this long after the last began. */
const leastPauseMs = 60_000;

interface UpkeepStep {
  readonly pages: number;
  /** The walk has ended, or there is nothing to do now. */
  readonly rests: boolean;
}

interface State {
  host_hash: string | null;
  url_hash: string | null;
  round: number;
  round_finished_at: Date | null;
  standings: Record<string, number>;
  least_standing: number;
  words: number;
}

export async function keepSearch(pool: Pool, now: Date): Promise<UpkeepStep> {
  return await inTransaction(pool, async (client) => {
    const { rows } = await client.query<State>("select * from search_upkeep for update skip locked");
    const state = rows[0];
    if (state === undefined || isResting(state, now)) return { pages: 0, rests: true };
    const pages = await readBatch(client, state, batchPages);
    if (pages.length === 0) {
      await endRound(client, state, now);
      return { pages: 0, rests: true };
    }
    await writePages(client, state, pages);
    await noteUsedSets(client, [...new Set(pages.flatMap(({ preferenceSet }) => preferenceSet ?? []))], now);
    const added = await addWords(client, pages, state.round);
    await stepOn(client, state, { pages, added });
    return { pages: pages.length, rests: false };
  });
}

function isResting({ host_hash: at, round_finished_at: finished }: State, now: Date): boolean {
  return at === null && finished !== null && now.getTime() - finished.getTime() < leastPauseMs;
}

/** A page that is being written is left to the next round, so that neither waits for the other. */
async function writePages(client: PoolClient, state: State, pages: readonly WalkedPage[]): Promise<void> {
  const changed = pages
    .map((page) => ({ ...page, newTier: standingOf(page) >= state.least_standing ? 0 : 1 }))
    .filter((page) => page.newTier !== page.tier || page.linkingHosts !== page.popularity);
  if (changed.length === 0) return;
  await client.query(
    `with free as (
       select p.host_hash, p.url_hash, given.popularity, given.tier
       from page p
       join unnest($1::bigint[], $2::bigint[], $3::smallint[], $4::smallint[])
         as given (host_hash, url_hash, popularity, tier) using (host_hash, url_hash)
       for no key update of p skip locked
     )
     update page p
     set popularity = free.popularity, tier = free.tier
     from free
     where p.host_hash = free.host_hash and p.url_hash = free.url_hash`,
    columnsOf(changed, ["hostHash", "urlHash", "linkingHosts", "newTier"]),
  );
}

async function stepOn(
  client: PoolClient,
  state: State,
  { pages, added }: { readonly pages: readonly WalkedPage[]; readonly added: number },
): Promise<void> {
  const standings = { ...state.standings };
  for (const page of pages) {
    const standing = standingOf(page);
    standings[standing] = (standings[standing] ?? 0) + 1;
  }
  const last = pages.at(-1)!;
  const words = await forgetWords(client, {
    words: state.words + added,
    round: state.round,
    roundEnds: false,
  });
  await client.query("update search_upkeep set host_hash = $1, url_hash = $2, standings = $3, words = $4", [
    last.hostHash,
    last.urlHash,
    standings,
    words,
  ]);
}

async function endRound(client: PoolClient, state: State, now: Date): Promise<void> {
  const counts = new Map(
    Object.entries(state.standings).map(([standing, pages]) => [Number(standing), pages]),
  );
  const words = await forgetWords(client, { words: state.words, round: state.round, roundEnds: true });
  await client.query(
    `update search_upkeep
     set host_hash = null, url_hash = null, round = round + 1, round_finished_at = $1,
       walked_since = round_finished_at, standings = '{}',
       least_standing = $2, words = $3`,
    [now, leastStandingOf(counts), words],
  );
}

// The next pages of the walk, with the hosts that link to them and their first words.

interface WalkedPage extends Standing {
  readonly hostHash: HostHash;
  readonly urlHash: UrlHash;
  readonly language: string;
  /** The row's current values. */
  readonly popularity: number;
  readonly tier: number;
  readonly preferenceSet: number | null;
  /** Empty where the page asks not to be indexed. */
  readonly words: readonly string[];
}

/** At most this many links are read to count the hosts they come from. */
const linksCounted = 1000;

/** SQL for the page `p`. Nofollow links and links from the page's own host are not recommendations. */
const linkingHostsSql = `(
      select count(distinct linking.host_hash)::int
      from (
        select o.host_hash
        from out_link o
        where ${linksBeyond("o", "p.url_hash")} and not ${isNofollow("p.url_hash")}
        limit ${linksCounted}
      ) linking
    )`;

const firstCharacters = 400;

interface Row {
  host_hash: HostHash;
  url_hash: UrlHash;
  url: string;
  language: string | null;
  title: string;
  headings: readonly { readonly text: string }[];
  beginning: string;
  silent: boolean;
  preference_set: number | null;
  popularity: number;
  tier: number;
  is_copy: boolean;
  linking_hosts: number;
}

async function readBatch(
  client: PoolClient,
  after: { readonly host_hash: string | null; readonly url_hash: string | null },
  limit: number,
): Promise<WalkedPage[]> {
  const { rows } = await client.query<Row>(batchSql(after.host_hash !== null, limit), [
    ...(after.host_hash === null ? [] : [after.host_hash, after.url_hash]),
  ]);
  return rows.map((row) => ({
    hostHash: row.host_hash,
    urlHash: row.url_hash,
    language: row.language ?? "",
    popularity: row.popularity,
    tier: row.tier,
    linkingHosts: row.linking_hosts,
    isFrontPage: new URL(row.url).pathname === "/",
    isLaterCopy: row.is_copy,
    preferenceSet: row.preference_set,
    words: row.silent ? [] : pageWords([row.title, ...row.headings.map(({ text }) => text), row.beginning]),
  }));
}

const batchSql = (hasPlace: boolean, limit: number) => `
  select p.*, ${linkingHostsSql} as linking_hosts
  from (
    select host_hash, url_hash, url, language, title, headings, left(excerpt, ${firstCharacters}) as beginning,
      popularity, tier, preference_set, duplicate_url_hash is not null as is_copy,
      noindex or exists (
        select from frontier_host h where h.host_hash = page.host_hash and h.opt_out_id is not null
      ) as silent
    from page
    ${hasPlace ? "where (host_hash, url_hash) > ($1::bigint, $2::bigint)" : ""}
    order by host_hash, url_hash
    limit ${limit}
  ) p
  order by host_hash, url_hash`;

// Table search_word: counted in rounds of the upkeep, and bounded whatever the pages contain.

/** About 100 MB with its indexes. */
const mostWords = 300_000;

/** Returns how many are new. Sorted, so that writers cannot deadlock. */
async function addWords(client: PoolClient, pages: readonly WalkedPage[], round: number): Promise<number> {
  const counts = new Map<string, { word: string; language: string; pages: number }>();
  for (const { words, language } of pages) {
    for (const word of words) {
      const key = `${word} ${language}`;
      const known = counts.get(key);
      if (known) known.pages += 1;
      else counts.set(key, { word, language, pages: 1 });
    }
  }
  const rows = [...counts].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, row]) => row);
  if (rows.length === 0) return 0;
  const { rows: written } = await client.query<{ added: number }>(
    `with written as (
       insert into search_word as w (word, language, pages, round, deletes)
       select word, language, pages, $1, string_to_array(deletes, ' ')
       from unnest($2::text[], $3::text[], $4::real[], $5::text[]) as given (word, language, pages, deletes)
       on conflict (word, language) do update
         set pages = case when w.round = excluded.round then w.pages else w.pages / 2 end + excluded.pages,
             round = excluded.round
       returning (xmax = 0) as is_new
     )
     select count(*) filter (where is_new)::int as added from written`,
    [
      round,
      rows.map(({ word }) => word),
      rows.map(({ language }) => language),
      rows.map(({ pages: count }) => count),
      rows.map(({ word }) => deletesOf(word).join(" ")),
    ],
  );
  return written[0]?.added ?? 0;
}

/**
 * Deletes words that a whole round did not meet, and the rarest where there are too many. Returns how many are left.
 */
async function forgetWords(
  client: PoolClient,
  known: { readonly words: number; readonly round: number; readonly roundEnds: boolean },
): Promise<number> {
  const isFull = known.words > mostWords;
  if (!known.roundEnds && !isFull) return known.words;
  if (known.roundEnds) await client.query("delete from search_word where round < $1", [known.round]);
  if (isFull) {
    await client.query(
      `delete from search_word
       where pages <= (select pages from search_word order by pages desc offset ${mostWords / 2} limit 1)`,
    );
  }
  const { rows } = await client.query<{ words: number }>("select count(*)::int as words from search_word");
  return rows[0]?.words ?? 0;
}
