/** Table search_word: counted by rounds of the upkeep, and bounded whatever the pages hold. */
import type { PoolClient } from "pg";
import type { WalkedPage } from "./walked-pages.ts";
import { deletesOf } from "./word-slips.ts";

/** About 100 MB with its indexes. */
const mostWords = 300_000;

/** Gives how many are new. Sorted, so that nobody waits for anybody in a circle. */
export async function addWords(
  client: PoolClient,
  pages: readonly WalkedPage[],
  round: number,
): Promise<number> {
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

/** Words that a whole round did not meet go, and the rarest where there are too many. Gives how many are left. */
export async function forgetWords(
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
