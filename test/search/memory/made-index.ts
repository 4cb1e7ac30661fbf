/** Small pages of few words, so that every query matches some of them: rows of table page, lexemes by Postgres. */
import type { Pool } from "pg";
import { seededRandom } from "#core/random";

const words = {
  english: [
    "ferry",
    "ferries",
    "harbour",
    "running",
    "ran",
    "island",
    "timetable",
    "boats",
    "isn't",
    "foo-bar",
    "2026",
  ],
  german: ["fähre", "fähren", "hafen", "läuft", "insel", "fahrplan", "boote", "straße", "2026"],
  simple: ["ferry", "hafen", "ilha", "barco", "2026"],
} as const;

const hosts = ["example.org", "www.example.org", "a.www.example.org", "example.net", "hafen.example"];

export const typedWords = [...new Set(Object.values(words).flat())];

export async function seedMadePages(pool: Pool, pages: number, seed: number): Promise<void> {
  const random = seededRandom(seed);
  const one = <T>(some: readonly T[]): T => some[Math.floor(random() * some.length)]!;
  const rows = Array.from({ length: pages }, (_, number) => {
    const config = one(Object.keys(words) as (keyof typeof words)[]);
    const text = (most: number) =>
      Array.from({ length: 1 + Math.floor(most * random()) }, () => one([...words[config], "the", "x"])).join(
        " ",
      );
    const host = one(hosts);
    return {
      host,
      config,
      url: `https://${host}/${text(2).replaceAll(" ", "/")}/${number}`,
      title: text(3),
      heading: text(3),
      body: text(40),
    };
  });
  const column = (name: keyof (typeof rows)[number]) => rows.map((row) => row[name]);
  await pool.query(
    `insert into page (host_hash, url_hash, url, host, crawler_id, fetched_at, status, content_type, language,
       text_search_config, title, description, excerpt, headings, noindex, digest, simhash, words, body_bytes,
       wire_bytes, shipped_bytes, popularity, published_at, lexemes)
     select hashtextextended(host, 0), hashtextextended(url, 0), url, host, 1 + at % 2, '2026-02-01', 200, 'text/html',
       left(config, 2), config, title, '', body, '[]', at % 17 = 0, repeat('0', 64), repeat('0', 16), 40, 4000, 1000, 500,
       case when at % 3 = 0 then at % 300 else 0 end,
       case when at % 2 = 0 then timestamptz '2026-01-01Z' + at * interval '5 hours' end,
       setweight(to_tsvector(config::regconfig, body), 'D') || setweight(to_tsvector(config::regconfig, title), 'A')
         || setweight(to_tsvector(config::regconfig, heading), 'B')
     from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[]) with ordinality
       as given (host, config, url, title, heading, body, at)`,
    [column("host"), column("config"), column("url"), column("title"), column("heading"), column("body")],
  );
}

/** Queries as people type them: words, phrases, exclusions, alternatives. */
export function typedQueries(count: number, seed: number): string[] {
  const random = seededRandom(seed);
  const word = () => typedWords[Math.floor(random() * typedWords.length)]!;
  const some = (most: number) => Array.from({ length: 1 + Math.floor(most * random()) }, word).join(" ");
  const forms = [
    () => word(),
    () => some(3),
    () => `"${some(3)}"`,
    () => `${word()} -${word()}`,
    () => `${word()} or ${word()}`,
    () => `${word()} "${word()} the ${word()}"`,
    () => `${word()} -"${word()} ${word()}" or ${some(2)}`,
    () => `'${word()}\\ ${word()}:*A`,
  ];
  return Array.from({ length: count }, () => forms[Math.floor(random() * forms.length)]!());
}
