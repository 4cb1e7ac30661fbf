/**
 * How many lexemes, with all their positions, are the same as Postgres': per language on lists of words and on the
 * Universal Declaration, and on real pages as they are extracted. And simhashes of real texts with small edits.
 */
import { readFileSync } from "node:fs";
import { gunzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { decodeText } from "#crawler/extract/charset";
import { dictionaryOf, supportedConfigs } from "#crawler/extract/dictionaries";
import { extractPage } from "#crawler/extract/extract-page";
import { LexemeVector } from "#crawler/extract/lexemes";
import { pageText } from "#crawler/extract/page-text";
import { readPage } from "#crawler/extract/read-page";
import { simhashDistance } from "#crawler/extract/simhash";
import { WorkTurns } from "#crawler/extract/work-turns";
import type { Database } from "#db/connect";
import { testDatabase } from "../../support/database.ts";
import { sharedData } from "../../support/shared-data.ts";

let database: Database;
let majorVersion: number;
beforeAll(async () => {
  database = await testDatabase();
  const answer = await database.pool.query(
    "select current_setting('server_version_num')::int / 10000 as major",
  );
  majorVersion = answer.rows[0].major;
});
afterAll(() => database.close());

/** Lexemes that either side has, and those that both have at the same positions. */
async function compared(
  config: string,
  vector: string,
  text: string,
): Promise<{ all: number; same: number }> {
  const answer = await database.pool.query<{ all: number; same: number }>(
    `select count(*)::int as all,
       count(*) filter (where a.positions = b.positions)::int as same
     from unnest($1::tsvector) a full join unnest(to_tsvector($2::regconfig, $3)) b using (lexeme)`,
    [vector, config, text],
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
  hindi: "hi",
  hungarian: "hu",
  indonesian: "id",
  irish: "ga",
  italian: "it",
  nepali: "ne",
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
      let all = 0;
      let same = 0;
      for (const text of textsIn(config, language)) {
        const vector = new LexemeVector(await dictionaryOf(config, majorVersion));
        vector.add(text, "D");
        const found = await compared(config, vector.toString(), text);
        all += found.all;
        same += found.same;
      }

      expect(all).toBeGreaterThan(50);
      expect(same / all).toBeGreaterThanOrEqual(0.995);
    },
  );
});

/** Samples of the language, and of its list of words as many as have distinct positions. */
function textsIn(config: string, language: string): string[] {
  const samples = JSON.parse(readFileSync(declarations!, "utf8")) as {
    bcp47: string;
    paragraphs: readonly string[];
  }[];
  const texts = samples
    .filter(({ bcp47 }) => bcp47.split("-", 1)[0] === language)
    .map(({ paragraphs }) => paragraphs.join("\n"));
  const list = sharedData(`suites/content/snowball/${config}.tsv.gz`);
  if (list === null) return texts;
  const lines = gunzipSync(readFileSync(list)).toString().split("\n");
  const step = Math.ceil(lines.length / 12_000);
  const words = lines.filter((_, index) => index % step === 0).map((line) => line.split("\t", 1)[0]);
  return [...texts, words.join(" ")];
}

const manifest = sharedData("suites/pages/manifest.json");

interface RealPage {
  readonly config: string;
  readonly lexemes: string;
  /** What the lexemes were made of. */
  readonly text: string;
  readonly simhash: string;
}

async function realPage(file: string): Promise<RealPage | null> {
  const bytes = readFileSync(sharedData(`suites/pages/${file}`)!);
  const contentType = "text/html";
  const { page } = await extractPage({
    url: "http://site.example/",
    bytes,
    contentType,
    contentLanguage: null,
    robotsTag: undefined,
    quiet,
  });
  const read = await readPage(decodeText(bytes, contentType).text, new WorkTurns(quiet));
  const pieces = pageText(read).pieces.map((piece) => piece.text);
  const text = [page.title, page.description, ...pieces].join("\n").replaceAll("\0", " ");
  const wellFormed = text.replace(/\p{Surrogate}/gu, "\ufffd");
  if (page.lexemes === "") return null;
  return { config: page.textSearchConfig, lexemes: page.lexemes, text: wellFormed, simhash: page.simhash };
}

describe.skipIf(manifest === null)("real pages", () => {
  const files = () =>
    (JSON.parse(readFileSync(manifest!, "utf8")) as { file: string }[]).map((entry) => entry.file);

  it("have at least 99.5 % of their lexemes, with all positions, as Postgres has them", async () => {
    let all = 0;
    let same = 0;

    for (const file of files()) {
      const page = await realPage(file);
      if (page === null) continue;
      const found = await compared(page.config, page.lexemes, page.text);
      all += found.all;
      same += found.same;
    }

    expect(all).toBeGreaterThan(50_000);
    // Crawlers make lexemes for the newest version unless told otherwise; older ones stem German differently.
    expect(same / all).toBeGreaterThanOrEqual(majorVersion >= 18 ? 0.995 : 0.95);
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

    for (const file of files().filter((_, index) => index % 4 === 0)) {
      const page = await realPage(file);
      const words = page?.text.split(/\s+/) ?? [];
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
