/**
 * What search needs beside the pages, kept fresh by walking through them by key, a batch at a time: how many other
 * hosts link to each, which belong to the first tier, and the words that people write. One coordinator at a time
 * walks; whoever is killed leaves the rest of the batch to the next. A round through a million pages takes hours, and
 * then begins again.
 */
import type { Pool, PoolClient } from "pg";
import { columnsOf, inTransaction } from "../database/transaction.ts";
import { leastStandingOf, standingOf } from "./ranking.ts";
import { readBatch, type WalkedPage } from "./walked-pages.ts";
import { addWords, forgetWords } from "./word-writes.ts";

/** Pages of one batch: a transaction of tens of milliseconds. */
const batchPages = 200;
/** A round that took less begins anew only after so long. */
const leastPauseMs = 60_000;

export interface UpkeepStep {
  readonly pages: number;
  /** The walk came to its end, or there is nothing to do for now. */
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
    const added = await addWords(client, pages, state.round);
    await stepOn(client, state, { pages, added });
    return { pages: pages.length, rests: false };
  });
}

function isResting({ host_hash: at, round_finished_at: finished }: State, now: Date): boolean {
  return at === null && finished !== null && now.getTime() - finished.getTime() < leastPauseMs;
}

/** A page that is being written is left for the next round: results wait for nobody here, and nobody for them. */
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
     set host_hash = null, url_hash = null, round = round + 1, round_finished_at = $1, standings = '{}',
       least_standing = $2, words = $3`,
    [now, leastStandingOf(counts), words],
  );
}
