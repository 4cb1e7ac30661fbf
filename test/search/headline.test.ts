/** Our marks compared with those of Postgres' ts_headline. */
import { readFileSync } from "node:fs";
import { gunzipSync } from "node:zlib";
import { expect, it } from "vitest";
import { letterKeepers, withoutMarks } from "#coordinator/tell/search/headline";
import { Headlines } from "#coordinator/tell/search/headline-reads";
import { testDatabase } from "../support/database.ts";
import { forThisFile } from "../support/for-this-file.ts";
import { sharedData } from "../support/shared-data.ts";

const database = await forThisFile(testDatabase());

interface Sample {
  readonly configuration: string;
  readonly text: string;
  readonly query: string;
}

/** Marked by Postgres, and by us. */
async function bothMarked(samples: readonly Sample[]): Promise<{ theirs: string[]; ours: string[] }> {
  const { rows } = await database.pool.query<{ marked: string; query: string }>(
    `select ts_headline(given.configuration::regconfig, given.text,
         websearch_to_tsquery(given.configuration::regconfig, given.words),
         'StartSel=\u0002, StopSel=\u0003, HighlightAll=true') as marked,
       websearch_to_tsquery(given.configuration::regconfig, given.words)::text as query
     from unnest($1::text[], $2::text[], $3::text[]) with ordinality as given (configuration, text, words, at)
     order by at`,
    [
      samples.map((one) => one.configuration),
      samples.map((one) => one.text),
      samples.map((one) => one.query),
    ],
  );
  const ours = await new Headlines(database.pool).mark(
    samples.map(({ configuration, text }, at) => ({ configuration, text, query: rows[at]!.query })),
  );
  return { theirs: rows.map(({ marked }) => marked), ours };
}

const made: readonly Sample[] = [
  [
    "english",
    "The ferries leave. A ferry-boat (Ferry!) left ferry.example.org/ferry?x=ferry ferrying",
    "ferry",
  ],
  [
    "english",
    "It's a well-known state-of-the-art e-mail: mail ops@site.example -5 +7.5 v1.2.3 1e5",
    "state known 5 7.5 mail",
  ],
  ["english", "<a href='ferry'>ferry</a> & &amp; ferry<br/>ferry <!-- ferry --> a < ferry b", "ferry"],
  ["english", "walks along the harbour wall, walled harbours; harbour  wall", '"harbour wall" -walk'],
  ["english", "a\u00a0ferry\u200bferry\ufeffferry\u2028ferry\u0085ferry\tferry\u001fferry\u0007", "ferry"],
  [
    "english",
    "/usr/bin/ferry ~/ferry ../ferry ./ferry ferry/ ferry.txt ferry_boat ferry'ferry \\ferry 'ferry'",
    "ferry",
  ],
  ["german", "Die Häfen, der Hafen: HÄFEN, Straße STRASSE Hafen-City 3.5-mal", "hafen straße mal"],
  ["french", "L'été, les étés d'une forêt; l’hôpital", "été hôpital forêts"],
  ["spanish", "Las niñas corrían; ¿corriendo? ¡Niña!", "niña correr corriendo"],
  ["finnish", "Talossa, talot ja talojen välissä", "talo väli"],
  ["russian", "Ёжики и ежик: книги, книга в Python and running", "книга running ёжик"],
  ["turkish", "İstanbul'da evler, evlerimiz IŞIK ışık", "istanbul ev ışık"],
  ["arabic", "الكتاب والكتب في المكتبة", "كتاب مكتبة"],
  ["tamil", "மரங்கள் மரம் வீடுகளில்", "மரம் வீடு"],
  ["armenian", "գրքեր գիրք տներում", "գիրք տներ"],
  [
    "simple",
    "東京都の天気 東京 ไทยภาษา 한국어 문서 עברית הבית ქართული 𝒜 😀 ferry😀",
    "東京 한국어 הבית ქართული ferry",
  ],
  ["simple", "ΣΊΣΥΦΟΣ σίσυφος Σ' ὈΔΥΣΣΕΎΣ", "σίσυφοσ σίσυφος"],
  ["english", "", "ferry"],
  ["english", "nothing here", "the"],
].map(([configuration = "", text = "", query = ""]) => ({ configuration, text, query }));

it.each(made)("marks the words of $configuration that Postgres marks: $text", async (sample) => {
  const { theirs, ours } = await bothMarked([sample]);

  expect(ours).toEqual(theirs);
});

it("marks what Postgres marks in texts of many languages and scripts", async (context) => {
  const path = sharedData("suites/content/udhr-langid.json");
  if (path === null) return context.skip();
  const languages: { readonly bcp47: string; readonly paragraphs: readonly string[] }[] = JSON.parse(
    readFileSync(path, "utf8"),
  );
  const { rows } = await database.pool.query<{ name: string }>(
    "select cfgname as name from pg_ts_config where cfgnamespace = 'pg_catalog'::regnamespace order by 1",
  );
  const samples = languages.map(({ paragraphs }, at) => {
    const text = withoutMarks([...paragraphs.join(" ")].slice(0, 300).join("")).replaceAll("\0", "");
    const words = text.split(/\s+/).filter((_, word) => word % 4 === 0);
    return { configuration: rows[at % rows.length]!.name, text, query: words.slice(0, 8).join(" or ") };
  });

  const { theirs, ours } = await bothMarked(samples);

  expect(samples.length).toBeGreaterThan(100);
  expect(ours).toEqual(theirs);
});

it("keeps a word of 10 MB and marks the others", async () => {
  const text = `ferry ${"x".repeat(10_000_000)} ferries`;

  const [marked] = await new Headlines(database.pool).mark([
    { configuration: "english", text, query: "'ferri'" },
  ]);

  expect(marked === text.replace(/ferr\w+/g, "\u0002$&\u0003")).toBe(true);
});

it("parses a word once, however many searches show it", async () => {
  const asked: unknown[] = [];
  const pool = new Proxy(database.pool, {
    get: (target, name) =>
      name === "query"
        ? (question: { values: unknown[] }) => {
            asked.push(question.values[1]);
            return target.query(question as never);
          }
        : Reflect.get(target, name),
  });
  const headlines = new Headlines(pool);
  const of = (text: string) => headlines.mark([{ configuration: "english", text, query: "'ferri'" }]);

  await of("The ferry, the fox and a ferry");
  await of("the ferry, Fox and quay");

  expect(asked).toEqual([["ferry,", "fox", "ferry"], ["Fox"]]);
});

it("knows the configurations that keep a word's first letter", async (context) => {
  for (const configuration of letterKeepers) {
    if (configuration === "simple") continue;
    const of = configuration === "russian" ? "english" : configuration;
    const path = sharedData(`suites/content/snowball/${of}.tsv.gz`);
    if (path === null) return context.skip();
    const words = gunzipSync(readFileSync(path))
      .toString()
      .split("\n")
      .map((line) => line.split("\t")[0]!)
      .filter((word, at) => at % 20 === 0 && /^[a-z]\p{L}*$/u.test(word));

    const { rows } = await database.pool.query(
      `select word, (tsvector_to_array(to_tsvector($1::regconfig, word)))[1] as lexeme
       from unnest($2::text[]) as word
       where left((tsvector_to_array(to_tsvector($1::regconfig, word)))[1], 1) <> left(word, 1)`,
      [configuration, words],
    );

    expect(words.length, configuration).toBeGreaterThan(100);
    expect(rows, configuration).toEqual([]);
  }
});
