/** The index in memory against Postgres: the same pages match, and their ranks are the same. */
import { beforeAll, describe, expect, it } from "vitest";
import { configurationsSql, wordQueries } from "#coordinator/tell/search/candidate-reads";
import { DatabaseIndex, OutOfRoom } from "#coordinator/tell/search/memory/database-index-store";
import type { IndexAnswer, IndexArm, IndexQuestion } from "#coordinator/tell/search/memory/index-answer";
import { plainWords } from "#coordinator/tell/search/query";
import { testDatabase } from "../../support/database.ts";
import { forThisFile } from "../../support/for-this-file.ts";
import { seedWorld, worldNow } from "../../support/seed-world.ts";
import { seedMadePages, typedQueries, typedWords } from "./made-index.ts";

const room = { mostBytes: Number.POSITIVE_INFINITY, usedBytes: () => 0 };
const nowS = worldNow.getTime() / 1000;
const noFilters = {
  host: null,
  language: null,
  country: null,
  crawler: null,
  from: null,
  to: null,
  preference: null,
  excludeHost: null,
  title: null,
  type: null,
};

const database = await forThisFile(testDatabase());
let index: DatabaseIndex;
beforeAll(async () => {
  await seedWorld(database.pool);
  await database.pool.query("delete from page");
  await seedMadePages(database.pool, 400, 1);
  index = new DatabaseIndex(database.pool, room);
  await index.build();
});

async function questionOf(words: string, changed: Partial<IndexQuestion> = {}): Promise<IndexQuestion> {
  const { rows } = await database.pool.query<{ text_search_config: string }>(configurationsSql);
  const arms = await wordQueries(
    database.pool,
    { words, title: changed.filters?.title ?? null },
    rows.map((row) => row.text_search_config),
  );
  return {
    arms,
    plainWords: plainWords(words),
    filters: noFilters,
    crawlerId: null,
    sort: "relevance",
    wanted: 1000,
    nowS,
    ...changed,
  };
}

/** Computed from the weights in Postgres. */
const inTitle = (lexemes: string) =>
  `exists (select from unnest(p.lexemes) l where l.lexeme = any('${lexemes}') and 'A' = any(l.weights))`;

interface Match {
  url_hash: string;
  text_rank: number;
  head_rank: number;
}

/** Every match as Postgres finds and ranks it. */
async function matchesInPostgres(arms: readonly IndexArm[], condition = "true"): Promise<Match[]> {
  const { rows } = await database.pool.query<Match>(
    `select p.url_hash, ts_rank_cd(p.lexemes, arm.query::tsquery, 1) as text_rank, ts_rank(p.head, arm.any_query::tsquery) as head_rank
     from unnest($1::text[], $2::text[], $3::text[], $4::text[]) as arm (configurations, query, head_query, any_query)
     join page p on p.text_search_config = any(string_to_array(arm.configurations, ','))
       and (p.lexemes @@ arm.query::tsquery or p.head @@ arm.head_query::tsquery)
     where not p.noindex and ${condition}
     order by p.url_hash`,
    [
      arms.map(({ configurations }) => configurations.join(",")),
      arms.map(({ query }) => query),
      arms.map(({ headQuery }) => headQuery),
      arms.map(({ anyQuery }) => anyQuery),
    ],
  );
  return rows;
}

function matchesOf({ pages }: IndexAnswer): Match[] {
  return pages
    .map(({ urlHash, signals }) => ({
      url_hash: urlHash,
      text_rank: signals.textRank,
      head_rank: signals.headRank,
    }))
    .sort((a, b) => (BigInt(a.url_hash) < BigInt(b.url_hash) ? -1 : 1));
}

const rounded = (matches: readonly Match[]) =>
  matches.map(
    ({ url_hash, text_rank, head_rank }) =>
      `${url_hash} ${text_rank.toPrecision(4)} ${head_rank.toPrecision(4)}`,
  );

describe("a search of the index in memory", () => {
  it("finds what Postgres finds, and ranks text and head as it does", async () => {
    let matches = 0;
    for (const words of [...typedWords, ...typedQueries(100, 5)]) {
      const question = await questionOf(words);
      const answer = index.search(question);
      const expected = await matchesInPostgres(question.arms);

      expect(answer, words).not.toBeNull();
      expect(rounded(matchesOf(answer!)), words).toEqual(rounded(expected));
      expect(answer!.total, words).toBe(expected.length);
      matches += expected.length;
    }
    expect(matches).toBeGreaterThan(1000);
  });

  it("returns the best of all matches, from any segment", async () => {
    const all = index.search(await questionOf("ferry or hafen"))!;
    const best = index.search(await questionOf("ferry or hafen", { wanted: 10 }))!;

    expect(all.pages.length).toBeGreaterThan(100);
    expect(best.total).toBe(all.total);
    expect(best.pages).toEqual(all.pages.slice(0, 10));
  });

  it("filters like the database", async () => {
    const filters: readonly (readonly [Partial<typeof noFilters>, string])[] = [
      [
        { host: "www.example.org" as never },
        "(p.host = 'www.example.org' or p.host like '%.www.example.org')",
      ],
      [{ language: "ge" as never }, "p.language = 'ge'"],
      [{ from: "2026-02-02" as never }, "coalesce(p.published_at, p.fetched_at) >= '2026-02-02Z'"],
      [{ to: "2026-01-31" as never }, "coalesce(p.published_at, p.fetched_at) < '2026-02-01Z'"],
      [{ crawler: "x" as never }, "p.crawler_id = 2"],
      [{ preference: "ai-train=unstated" as never }, "true"],
      [{ preference: "ai-train=denied" as never }, "false"],
      [{ country: "ZZ" as never }, "false"],
      [
        { excludeHost: "www.example.org,hafen.example" as never },
        "p.host not in ('www.example.org', 'a.www.example.org', 'hafen.example')",
      ],
      [{ excludeHost: "nowhere.example" as never }, "true"],
      [{ title: "Ferries" as never }, inTitle("{ferri,ferries}")],
      [{ title: '"ferry harbour"' as never }, "p.title ~ 'ferr(y|ies) harbour'"],
      [{ title: "the" as never }, "(p.text_search_config = 'english' or p.title ~ '\\mthe\\M')"],
      [{ type: "html" as never }, "true"],
      [{ type: "text" as never }, "false"],
    ];
    for (const [changed, condition] of filters) {
      const question = await questionOf("2026", { filters: { ...noFilters, ...changed }, crawlerId: 2 });
      const found = matchesOf(index.search(question)!).map(({ url_hash }) => url_hash);
      const expected = (await matchesInPostgres(question.arms, condition)).map(({ url_hash }) => url_hash);

      expect(found, condition).toEqual(expected);
    }
  });

  it("counts its facets over all matches", async () => {
    const question = await questionOf("2026");
    const { facets, total } = index.search(question)!;
    const { rows } = await database.pool.query<{ value: string; pages: number }>(
      `select language as value, count(*)::int as pages from page
       where lexemes @@ '2026'::tsquery and not noindex or head @@ '2026'::tsquery and not noindex
       group by language order by pages desc, value`,
    );

    expect(facets.language).toEqual(rows);
    expect(facets.language.reduce((sum, { pages }) => sum + pages, 0)).toBe(total);
  });
});

describe("pages that change", () => {
  const found = async (words: string) =>
    index
      .search(await questionOf(words))!
      .pages.map(({ urlHash }) => urlHash)
      .sort();
  const urlOf = async (condition: string) => {
    const { rows } = await database.pool.query<{ url_hash: string }>(
      `select url_hash from page where not noindex and ${condition} order by url_hash limit 1`,
    );
    return rows[0]!.url_hash;
  };

  it("are found with their new contents after the next look", async () => {
    const { pool } = database;
    const changed = await urlOf("text_search_config = 'simple'");
    await pool.query("update page set lexemes = 'zeppelin:1A balloon:2' where url_hash = $1", [changed]);
    const before = await found("zeppelin");
    await index.catchUp();
    const after = await found("zeppelin");
    await pool.query("update page set noindex = true where url_hash = $1", [changed]);
    await index.catchUp();
    const silent = await found("zeppelin");
    await pool.query("update page set noindex = false where url_hash = $1", [changed]);
    await index.catchUp();
    const again = await found("balloon");
    await pool.query("delete from page where url_hash = $1", [changed]);
    await index.catchUp();

    expect([before, after, silent, again, await found("balloon")]).toEqual([
      [],
      [changed],
      [],
      [changed],
      [],
    ]);
  });

  it("count once where they have nearly the same text, represented by the first that had it", async () => {
    const { rows } = await database.pool.query<{ url_hash: string }>(
      "select url_hash from page where not noindex order by url_hash limit 2",
    );
    const [first, copy] = rows.map((row) => row.url_hash);
    await database.pool.query(
      `update page set lexemes = case when url_hash = $2 then 'twin:1A' else 'twin:1' end::tsvector, text_group = 42,
         duplicate_host_hash = case when url_hash = $2 then host_hash end,
         duplicate_url_hash = case when url_hash = $2 then $1::bigint end
       where url_hash in ($1, $2)`,
      [first, copy],
    );
    await index.catchUp();
    const { total, pages, facets } = index.search(await questionOf("twin"))!;

    expect([total, facets.host.reduce((sum, one) => sum + one.pages, 0)]).toEqual([1, 1]);
    expect(pages.map(({ urlHash, alike }) => [urlHash, alike])).toEqual([[first, 1]]);
  });

  it("are found even when their transaction outlasts several looks", async () => {
    const slow = await database.pool.connect();
    const [first, second] = [
      await urlOf("text_search_config = 'english'"),
      await urlOf("text_search_config = 'german'"),
    ];
    try {
      await slow.query("begin");
      await slow.query("update page set lexemes = 'airship:1' where url_hash = $1", [first]);
      await database.pool.query("update page set lexemes = 'airship:1' where url_hash = $1", [second]);
      await index.catchUp();
      const early = await found("airship");
      await slow.query("commit");
      await index.catchUp();

      expect(early).toEqual([second]);
      expect(await found("airship")).toEqual([first, second].sort());
    } finally {
      slow.release();
    }
  });

  it("leave few segments and the same answers, however many arrive one by one", async () => {
    for (let round = 0; round < 20; round++) {
      await database.pool.query("update page set popularity = popularity + 1 where abs(url_hash) % 20 = $1", [
        round,
      ]);
      await index.catchUp();
    }
    const question = await questionOf("ferry -hafen");
    const fresh = new DatabaseIndex(database.pool, room);
    await fresh.build();

    expect(index.index.segments.length).toBeLessThan(14);
    expect(index.index.pages).toBe(fresh.index.pages);
    expect(index.search(question)).toEqual(fresh.search(question));
  });
});

describe("an index over its memory limit", () => {
  it("is given up, with the setting's name", async () => {
    const small = new DatabaseIndex(database.pool, { mostBytes: 1000, usedBytes: () => 2000 });

    const error = await small.build().catch((thrown: unknown) => thrown);

    expect(error).toBeInstanceOf(OutOfRoom);
    expect(String(error)).toContain("search.indexMegabytes");
  });
});
