/**
 * How many lexemes, with all their positions, are the same as Postgres': per language on lists of words and on the
 * Universal Declaration, and on real pages as they are extracted. And simhashes of real texts with small edits.
 */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { decodeText } from "#crawler/extract/charset";
import { dictionaryOf, supportedConfigs } from "#crawler/extract/dictionaries";
import { extractPage, pageText } from "#crawler/extract/extract-page";
import { LexemeVector } from "#crawler/extract/lexemes";
import { WorkTurns } from "#crawler/extract/read-list";
import { readPage } from "#crawler/extract/read-page";
import { type Database, postgresVersion } from "#db/server-database";
import { simhashDistance } from "#protocol/result";
import { testDatabase } from "../../support/database.ts";
import { sharedData } from "../../support/shared-data.ts";

let database: Database;
let majorVersion: number;
beforeAll(async () => {
  database = await testDatabase();
  majorVersion = await postgresVersion(database.pool);
});
afterAll(() => database.close());

interface Sample {
  readonly config: string;
  /** What the vector was made of. */
  readonly text: string;
  readonly vector: string;
}

/** Lexemes that either side has, and those that both have at the same positions. */
async function compared(samples: readonly Sample[]): Promise<{ all: number; same: number }> {
  const answer = await database.pool.query<{ all: number; same: number }>(
    `select count(*)::int as all, count(*) filter (where ours = theirs)::int as same
     from unnest($1::text[], $2::text[], $3::text[]) sample (config, vector, text)
     cross join lateral (
       select a.positions as ours, b.positions as theirs from unnest(sample.vector::tsvector) a
       full join unnest(to_tsvector(sample.config::regconfig, sample.text)) b using (lexeme)
     ) lexemes`,
    [
      samples.map(({ config }) => config),
      samples.map(({ vector }) => vector),
      samples.map(({ text }) => text),
    ],
  );
  return answer.rows[0]!;
}

const quiet = async () => {};
const languages: Readonly<Record<string, string>> = {
  arabic: "ar",
  armenian: "hy",
  basque: "eu",
  catalan: "ca",
  danish: "da",
  dutch: "nl",
  english: "en",
  finnish: "fi",
  french: "fr",
  german: "de",
  hungarian: "hu",
  indonesian: "id",
  irish: "ga",
  italian: "it",
  norwegian: "nb",
  portuguese: "pt",
  romanian: "ro",
  russian: "ru",
  spanish: "es",
  swedish: "sv",
  tamil: "ta",
  turkish: "tr",
};

const declarations = sharedData("suites/content/udhr-langid.json");
const listsFolder = sharedData("suites/content/snowball");

describe.skipIf(declarations === null || listsFolder === null)("text in each language", () => {
  it("is there for all configurations", () => {
    expect([...Object.keys(languages), "simple"].sort()).toEqual([...supportedConfigs].sort());
  });

  it.each(Object.entries(languages))(
    "%s: at least 99.5 in 100 lexemes are Postgres'",
    async (config, language) => {
      const dictionary = await dictionaryOf(config, majorVersion);
      const samples = textsIn(config, language).map((text) => {
        const vector = new LexemeVector(dictionary);
        vector.add(text, "D");
        return { config, text, vector: vector.toString() };
      });

      const { all, same } = await compared(samples);

      expect(all).toBeGreaterThan(50);
      expect(same / all).toBeGreaterThanOrEqual(0.995);
    },
  );
});

interface Declaration {
  readonly bcp47: string;
  readonly paragraphs: readonly string[];
}

let parsed: readonly Declaration[] | null = null;
const allDeclarations = () => {
  parsed ??= JSON.parse(readFileSync(declarations!, "utf8")) as Declaration[];
  return parsed;
};

/** Words of a list that are tried, from all over it. */
const wordsTried = 2000;

/** The declaration in the language, and words of its list where there is one. */
function textsIn(config: string, language: string): string[] {
  const texts = allDeclarations()
    .filter(({ bcp47 }) => bcp47.split("-", 1)[0] === language)
    .map(({ paragraphs }) => paragraphs.join("\n"));
  const list = join(listsFolder!, `${config}.tsv.gz`);
  if (!existsSync(list)) return texts;
  const lines = gunzipSync(readFileSync(list)).toString().split("\n");
  const step = Math.ceil(lines.length / wordsTried);
  const words = lines.filter((_, index) => index % step === 0).map((line) => line.split("\t", 1)[0]);
  return [...texts, words.join(" ")];
}

const manifest = sharedData("suites/pages/manifest.json");

interface RealPage extends Sample {
  readonly simhash: string;
}

async function realPage(file: string): Promise<RealPage> {
  const bytes = readFileSync(sharedData(`suites/pages/${file}`)!);
  const contentType = "text/html";
  const { page } = await extractPage({
    url: "http://site.example/",
    bytes,
    contentType,
    contentLanguage: null,
    robotsTag: undefined,
    postgresVersion: majorVersion,
    quiet,
  });
  const read = await readPage(decodeText(bytes, contentType).text, new WorkTurns(quiet));
  const pieces = pageText(read).pieces.map((piece) => piece.text);
  const text = [page.title, page.description, ...pieces].join("\n").replaceAll("\0", " ");
  const wellFormed = text.replace(/\p{Surrogate}/gu, "\ufffd");
  return { config: page.textSearchConfig, vector: page.lexemes, text: wellFormed, simhash: page.simhash };
}

let read: Promise<RealPage[]> | null = null;

/** Every sixth of the pages, those left out that forbid to be indexed. */
function realPages(): Promise<RealPage[]> {
  read ??= (async () => {
    const entries = JSON.parse(readFileSync(manifest!, "utf8")) as { file: string }[];
    const pages: RealPage[] = [];
    for (const { file } of entries.filter((_, index) => index % 6 === 0)) pages.push(await realPage(file));
    return pages.filter(({ vector }) => vector !== "");
  })();
  return read;
}

describe.skipIf(manifest === null)("real pages", () => {
  it("have at least 99.5 % of their lexemes, with all positions, as Postgres has them", async () => {
    const { all, same } = await compared(await realPages());

    expect(all).toBeGreaterThan(10_000);
    expect(same / all).toBeGreaterThanOrEqual(0.995);
  }, 120_000);

  it("nearly keep their simhash when a sentence goes or a few words change, and differ from each other", async () => {
    const dictionary = await dictionaryOf("english");
    const hashOf = (text: string) => {
      const vector = new LexemeVector(dictionary);
      vector.add(text, "D");
      return vector.simhash();
    };
    let [near, pairs, far] = [0, 0, 0];
    let last = "";

    for (const { text } of await realPages()) {
      const words = text.split(/\s+/);
      if (words.length < 600) continue;
      const [whole, edited] = [
        hashOf(words.join(" ")),
        hashOf([...words.slice(0, 300), "edited", ...words.slice(304)].join(" ")),
      ];
      pairs++;
      if (simhashDistance(whole, edited) <= 3) near++;
      if (last !== "" && simhashDistance(whole, last) > 6) far++;
      last = whole;
    }

    expect(pairs).toBeGreaterThan(10);
    expect(near / pairs).toBeGreaterThanOrEqual(0.95);
    expect(far / (pairs - 1)).toBeGreaterThanOrEqual(0.9);
  }, 60_000);
});

it("a text's simhash is the same in every version of the crawler", async () => {
  const vector = new LexemeVector(await dictionaryOf("simple"));
  vector.add("one two two three three three and so on, and on", "D");

  expect(vector.simhash()).toBe("83760f344b682f08");
});
