/** Compares the splitter with Postgres' parser on known classes of text and on random text. */

import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { beforeAll, describe, expect, it } from "vitest";
import { seededRandom } from "#core/random";
import { decodeText } from "#crawler/extract/charset";
import {
  anyWord,
  asciiWord,
  asItIs,
  dictionaryOf,
  supportedConfigs,
  textSearchConfigOf,
} from "#crawler/extract/dictionaries";
import { pageText } from "#crawler/extract/extract-page";
import { LexemeVector, wordsKept } from "#crawler/extract/lexemes";
import { stopWordsOf } from "#crawler/extract/stop-words";
import { splitTokens } from "#crawler/extract/tokens";
import { postgresVersion } from "#db/server-database";
import { simhashDistance } from "#protocol/result";
import { testDatabase } from "../../support/database.ts";
import { forThisFile } from "../../support/for-this-file.ts";
import { sharedData } from "../../support/shared-data.ts";
import { extracted, readOf } from "../support/extracted.ts";

const database = await forThisFile(testDatabase());

describe("tokens", () => {
  /** The token types that text search configurations use, by dictionary. */
  const kinds: Readonly<Record<string, number>> = {
    ...Object.fromEntries(["asciiword", "asciihword", "hword_asciipart"].map((name) => [name, asciiWord])),
    ...Object.fromEntries(["word", "hword", "hword_part"].map((name) => [name, anyWord])),
    ...Object.fromEntries(
      ["numword", "numhword", "hword_numpart", "email", "url", "host", "url_path", "file"]
        .concat(["sfloat", "float", "int", "uint", "version"])
        .map((name) => [name, asItIs]),
    ),
  };

  function ours(text: string): string[] {
    const tokens: string[] = [];
    const take = (token: { kind: number; from: number; to: number }) =>
      tokens.push(`${token.kind} ${text.slice(token.from, token.to)}`);
    splitTokens(text, { isFull: false, take });
    return tokens;
  }

  async function theirs(texts: readonly string[]): Promise<string[][]> {
    const answer = await database.pool.query<{ text: number; alias: string; token: string }>(
      `select t.ordinality::int - 1 as text, types.alias, parsed.token
     from unnest($1::text[]) with ordinality t(body, ordinality),
       lateral ts_parse('default', body) with ordinality parsed(tokid, token, place)
       join ts_token_type('default') types using (tokid)
     order by t.ordinality, parsed.place`,
      [texts],
    );
    const tokens = texts.map((): string[] => []);
    for (const { text, alias, token } of answer.rows) {
      if (kinds[alias] !== undefined) tokens[text]!.push(`${kinds[alias]} ${token}`);
    }
    return tokens;
  }

  describe("the tokens of", () => {
    it.each(
      Object.entries({
        "hosts, URLs and ports":
          "See site.example, www.a-b.site.example:8080/x?y=1#z, http://site.example/ and a.b",
        "e-mail addresses":
          "Mail first.last+tag@mail.site.example:25, é1@site.example or user@nohost, a@b.com@c.com",
        "files and paths":
          "in /etc/hosts, ~/.profile, ../up/../x.tar.gz, ./a, foo.bar_1, and/or a/b/.. or word.. end",
        numbers: "12 -3 +4.5 6.7e8 -9e-10 1.2.3 -1.2.3 1,024 18h30 1e5.com 3-year 2026-11-21 x2 2x",
        compounds:
          "state-of-the-art, e-mail, B2B-Shop, foo-bar-12 baz, a-1b-c, COVID-19, Straßen-Äpfel-3D, a--b, x-",
        "tags and entities":
          "a<b>c</b> 1 < 2 <br/> <!-- no --> <a href='x>y'>t</a> &amp; &#x41; &nope &copy;2026 AT&T",
        "scripts left in the text":
          "before <script> var hidden = 1; </script> after <style type=a> x </style> end",
        "a script that never ends": "before <script foo bar and nothing after counts",
        "other scripts": "日本語テキスト １月 مرحبا ٣٤ हिन्दी में १२ क्या ελληνικά Ελλάδα ไทย 한국어 Ελλάς",
        "characters outside the basic plane": "𝐀𝐁 x𝐀 😀 a😀b 𠀀𠀁",
        "combining marks": "e\u0301te \u0301alone a\u0308-b\u0308 x\u20dd",
        "apostrophes and quotes": "don't l’été 'quoted' “curly” O'Neil rock'n'roll ʼtick",
      }),
    )("%s are Postgres'", async (_name, text) => {
      const [expected] = await theirs([text]);

      expect(ours(text)).toEqual(expected);
    });

    it.each([
      ["joined ASCII", "ab1.-_@/: "],
      ["paths and signs", "a1.-/~+e "],
      ["marks and digits of other scripts", "aé1-. \u0301٣𝐀😀"],
      ["markup", "<a\"'/>= !-b;&#x1"],
      ["numbers", "a1e+-.2 "],
      ["scripts", "<script></style> a\\!--D?x"],
    ])("random text of %s are Postgres'", async (_name, alphabet) => {
      const seed = 5;
      const random = seededRandom(seed);
      const characters = [...alphabet];
      const texts = Array.from({ length: 1500 }, () =>
        Array.from(
          { length: 1 + Math.floor(random() * 20) },
          () => characters[Math.floor(random() * characters.length)],
        ).join(""),
      );

      const expected = await theirs(texts);

      for (const [index, text] of texts.entries()) {
        expect(ours(text), `seed ${seed}: ${JSON.stringify(text)}`).toEqual(expected[index]);
      }
    });
  });

  /** Counts how often a character is read. */
  class CountingText extends String {
    reads = 0;
    override charCodeAt(at: number): number {
      this.reads++;
      return super.charCodeAt(at);
    }
  }

  function readsOf(text: string): number {
    const counting = new CountingText(text);
    splitTokens(counting as unknown as string, { isFull: false, take: () => {} });
    return counting.reads;
  }

  describe("splitting hostile text", () => {
    it.each([
      ["one word", "a"],
      ["words joined by underscores", "a_"],
      ["words joined by hyphens", "a-"],
      ["words joined by hyphens and digits", "a-1-"],
      ["labels joined by dots", "a.b."],
      ["hosts that go wrong at the end", "site.example-a_"],
      ["addresses", "a@"],
      ["addresses without a host", "x_@"],
      ["numbers", "1."],
      ["exponents", "1e"],
      ["slashes and dots", "/."],
      ["slashes and tildes", "/~"],
      ["opened tags", "<a "],
      ["opened tags with quotes", "<a '"],
      ["opened comments", "<!--"],
      ["entities without an end", "&a"],
      ["entities with everything in them", "&a.:_-"],
      ["colons and slashes", "a://"],
      ["combining marks", "\u0301a"],
    ])("takes time in proportion to its length: %s", (_name, unit) => {
      const short = readsOf(unit.repeat(20_000 / unit.length));
      const long = readsOf(unit.repeat(80_000 / unit.length));

      expect(long).toBeLessThan(4.4 * short);
      expect(long).toBeLessThan(30 * 80_000);
    });
  });
});

/** Compares our lexemes with a real Postgres: words, positions and matching queries, per language on samples, word lists and the Universal Declaration, and on real pages. Also checks simhashes of slightly edited real texts. */
describe("lexemes", () => {
  let majorVersion: number;
  beforeAll(async () => {
    majorVersion = await postgresVersion(database.pool);
  });

  async function vectorOf(config: string, text: string): Promise<LexemeVector> {
    const vector = new LexemeVector(await dictionaryOf(config, majorVersion));
    vector.add(text, "D");
    return vector;
  }

  const ours = async (config: string, text: string) => (await vectorOf(config, text)).toString();

  it("a page with combining marks has the lexemes of the composed one", async () => {
    const text = "Zürcher Bäder öffnen früh; Ärzte prüfen das Wasser häufig.";
    const html = `<html lang="de"><p>${text.normalize("NFD")}`;
    const { lexemes } = await extracted(html, { postgresVersion: majorVersion });

    const { rows } = await database.pool.query(
      `select $1::tsvector::text as ours, to_tsvector('german', $2)::text as theirs,
       $1::tsvector @@ websearch_to_tsquery('german', 'Zürcher Ärzte') as found`,
      [lexemes, text],
    );
    expect(rows[0]).toMatchObject({ ours: rows[0].theirs, found: true });
  });

  async function both(
    config: string,
    text: string,
  ): Promise<{ readonly ours: string; readonly theirs: string }> {
    const answer = await database.pool.query(
      "select $1::tsvector::text as ours, to_tsvector($2::regconfig, $3)::text as theirs",
      [await ours(config, text), config, text],
    );
    return answer.rows[0] as { ours: string; theirs: string };
  }

  const samples: Readonly<Record<string, string>> = {
    english:
      "The well-known crawlers don't sleep; they're probing 1,024 subnets at 3.5 ms (v1.2.3), see " +
      "www.site.example/a?b=c or mail ops@site.example. Generously, Ms. O'Neil's T-shirt cost $5.00 on " +
      "2026-11-21, and/or -7 degrees. COVID-19 in the U.S.A.",
    german:
      "Die größten Straßen führten die Häuserzeilen entlang; viele Menschen übten sich in E-Mail-Verkehr und " +
      "Geschäftsführungen. Äpfel, Öl, Übermut, 12,5 Prozent.",
    french:
      "L'été dernier, les ambiguïtés naïves d'aujourd'hui n'étaient pas si évidentes que ça: Noël approchait, " +
      "les élèves lisaient des œuvres complètes. Rendez-vous à 18h30.",
    spanish:
      "Los niños corrían rápidamente por las montañas españolas, mientras las señoras leían periódicos antiguos.",
    italian:
      "Le città più belle d'Italia erano illuminate dalle luci notturne, e gli amici parlavano dell'università.",
    portuguese:
      "As crianças corriam rapidamente pelas ruas, enquanto os corações das nações batiam. Não há razões.",
    dutch:
      "De kinderen liepen langzaam door de straten van Amsterdam en zagen de mooiste bruggen en grachten.",
    swedish: "Barnen sprang genom skogarna och såg de vackraste sjöarna när solen gick ned över städerna.",
    norwegian: "Barna løp gjennom skogene og så de vakreste innsjøene mens solen gikk ned over byene.",
    danish: "Børnene løb gennem skovene og så de smukkeste søer, mens solen gik ned over byerne.",
    finnish:
      "Lapset juoksivat metsien halki ja näkivät kauneimmat järvet, kun aurinko laski kaupunkien ylle.",
    hungarian:
      "A gyerekek átszaladtak az erdőkön, és meglátták a legszebb tavakat, amikor a nap lenyugodott.",
    romanian:
      "Copiii alergau prin păduri şi vedeau cele mai frumoase lacuri; abonații îmbrăţişau declarațiile ziariștilor.",
    arabic:
      "ركض الأطفال عبر الغابات ورأوا أجمل البحيرات، والكتب القديمة في المدارس الجديدة. PostgreSQL servers",
    indonesian:
      "Anak-anak berlari melewati hutan-hutan dan melihat danau yang terindah, sedangkan pelajarannya dibacakan olehnya.",
    tamil: "குழந்தைகள் காடுகளில் ஓடி மிக அழகான ஏரிகளைப் பார்த்தார்கள்; மாணவர்களின் புத்தகங்கள் படிக்கப்பட்டன.",
    russian:
      "Ещё вчера ребята шли через зелёный лес и видели красивейшие озёра; GitHub и Postgres-серверы работали.",
    turkish:
      "Çocuklar ormanların içinden koştular ve şehirlerin üzerinde güneş batarken en güzel gölleri gördüler.",
    catalan: "Els nens corrien pels carrers de la ciutat mentre les senyores llegien els diaris antics.",
    basque: "Haurrak kaleetan zehar korrika zebiltzan, eta mendietako lakurik ederrenak ikusi zituzten.",
    irish: "Rith na páistí trí na coillte agus chonaic siad na lochanna is áille in Éirinn.",
    armenian: "Երեխաները վազում էին անտառներով և տեսնում ամենագեղեցիկ լճերը։ Postgres servers.",
    simple:
      "日本語テキスト １月 and Words STAY as they are, naïve-ish: foo_bar x2 Häuser\u00adzeile zero\u200bwidth a\ufeffb बच्चे किताबें पढ़ती थीं १२",
  };

  describe("every configuration with lexemes here", () => {
    it("has a sample here", () => {
      expect(Object.keys(samples).sort()).toEqual([...supportedConfigs].sort());
    });

    it("excludes Hindi and Nepali, which are left to simple", () => {
      expect(["hi", "ne", "ja", null].map(textSearchConfigOf)).toEqual(Array(4).fill("simple"));
    });

    it.each(Object.entries(samples))(
      "%s: the vector is the one that to_tsvector makes",
      async (config, text) => {
        const vectors = await both(config, text);

        expect(vectors.ours).toBe(vectors.theirs);
      },
    );

    it.each(supportedConfigs)("%s: omits exactly the server's stop words", async (config) => {
      const words = [...stopWordsOf(config)];

      const kept = await database.pool.query(
        "select word from unnest($2::text[]) word where to_tsvector($1::regconfig, word) <> ''",
        [config, words],
      );

      expect(kept.rows).toEqual([]);
    });
  });

  describe("a page's vector", () => {
    it("casts with weights, and matches queries for stems, compounds and hosts", async () => {
      const vector = new LexemeVector(await dictionaryOf("english"));
      vector.add("Crawling near", "A");
      vector.add("Delegated subnets", "B");
      vector.add("The state-of-the-art probes of site.example", "D");

      const answer = await database.pool.query(
        "select $1::tsvector::text as text, q as query, $1::tsvector @@ to_tsquery('english', q) as found from unnest($2::text[]) q",
        [
          vector.toString(),
          ["crawls:a", "subnet:b", "probing", "state-of-the-art", "site.example", "crawl:d"],
        ],
      );

      expect(answer.rows[0].text).toContain("'crawl':1A");
      expect(answer.rows.map((row) => [row.query, row.found])).toEqual([
        ["crawls:a", true],
        ["subnet:b", true],
        ["probing", true],
        ["state-of-the-art", true],
        ["site.example", true],
        ["crawl:d", false],
      ]);
    });

    it("of a very long text stays within tsvector's bounds", async () => {
      const words = Array.from({ length: 40_000 }, (_, index) => `word${index % 3000} again`).join(" ");

      const vectors = await both("english", words);

      expect(vectors.ours).toBe(vectors.theirs);
    });

    it("with quotes and backslashes around words still casts", async () => {
      const vectors = await both("simple", "it's a \\ 'quoted' \\' path C:\\temp");

      expect(vectors.ours).toBe(vectors.theirs);
    });
  });

  interface Sample {
    readonly config: string;
    /** The source text of the vector. */
    readonly text: string;
    readonly vector: string;
  }

  /** Counts the lexemes on either side, and those that agree with their positions. */
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

  const declarations = sharedData("suites/content/udhr-langid.json");
  const listsFolder = sharedData("suites/content/snowball");

  describe.skipIf(declarations === null || listsFolder === null)("text in each language", () => {
    it.each(supportedConfigs.filter((config) => config !== "simple"))(
      "%s: at least 99.5 in 100 lexemes are Postgres'",
      async (config) => {
        const texts = textsIn(config);
        const vectors = await Promise.all(texts.map(async (text) => await ours(config, text)));

        const { all, same } = await compared(
          texts.map((text, index) => ({ config, text, vector: vectors[index]! })),
        );

        expect(all).toBeGreaterThan(50);
        expect(same / all).toBeGreaterThanOrEqual(0.995);
      },
    );
  });

  let parsed: readonly { readonly bcp47: string; readonly paragraphs: readonly string[] }[] | null = null;

  /** Words taken evenly from a list. */
  const wordsTried = 2000;

  /** The declaration in the language, and words of its list if there is one. */
  function textsIn(config: string): string[] {
    parsed ??= JSON.parse(readFileSync(declarations!, "utf8")) as NonNullable<typeof parsed>;
    const texts = parsed
      .filter(({ bcp47 }) => textSearchConfigOf(bcp47.split("-", 1)[0]!) === config)
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
    const about = { url: "http://site.example/", contentType, contentLanguage: null };
    const page = await extracted(bytes, { ...about, postgresVersion: majorVersion });
    const { pieces } = pageText(await readOf(decodeText(bytes, contentType).text));
    const parts = [page.title, page.description, ...pieces.map((piece) => piece.text)];
    const text = parts
      .join("\n")
      .replaceAll("\0", " ")
      .replace(/\p{Surrogate}/gu, "\ufffd");
    return { config: page.textSearchConfig, vector: page.lexemes, text, simhash: page.simhash };
  }

  let read: Promise<RealPage[]> | null = null;

  /** Every sixth page, except those with noindex. */
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
    it("have at least 99.9 % of their lexemes, with all positions, as Postgres has them", async () => {
      const { all, same } = await compared(await realPages());

      expect(all).toBeGreaterThan(10_000);
      expect(same / all).toBeGreaterThanOrEqual(0.999);
    }, 120_000);

    it("nearly keep their simhash when a sentence is removed or a few words change, and differ from each other", async () => {
      const hashes = async (...texts: string[]) =>
        await Promise.all(texts.map(async (text) => (await vectorOf("english", text)).simhash()));
      let [near, pairs, far] = [0, 0, 0];
      let last = "";

      for (const { text } of await realPages()) {
        const words = text.split(/\s+/);
        if (words.length < 600) continue;
        const [whole, edited] = (await hashes(
          words.join(" "),
          [...words.slice(0, 300), "edited", ...words.slice(304)].join(" "),
        )) as [string, string];
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
    const vector = await vectorOf("simple", "one two two three three three and so on, and on");

    expect(vector.simhash()).toBe("83760f344b682f08");
  });
});

// The word tables are limited, and pages that are read simultaneously share them.

const distinctWords = (count: number, prefix: string) =>
  Array.from({ length: count }, (_, index) => `${prefix}${index.toString(36)}z`).join(" ");

async function vectorOf(text: string, config = "simple"): Promise<LexemeVector> {
  const vector = new LexemeVector(await dictionaryOf(config));
  vector.add(text, "D");
  return vector;
}

describe("cached words", () => {
  it("stay within their number, whatever pages contain", async () => {
    const most = 4 * 32_768; // three full tables and the current one
    for (let page = 0; page < 8; page++) await vectorOf(distinctWords(17_000, `p${page}`));
    const ofOneLanguage = wordsKept();
    for (const config of ["english", "french", "german", "indonesian"]) {
      for (const page of ["a", "b"]) await vectorOf(distinctWords(17_000, `${page}1`), config);
    }

    expect(ofOneLanguage).toBeGreaterThan(10_000);
    expect(ofOneLanguage).toBeLessThanOrEqual(most);
    expect(wordsKept()).toBeGreaterThan(10_000);
    expect(wordsKept()).toBeLessThanOrEqual(most);
  });

  it("keep a vector of very many distinct words within the message", async () => {
    const vector = await vectorOf(distinctWords(200_000, "w"));

    expect(vector.toString().length).toBeLessThan(900_000);
    expect(vector.words).toBeLessThan(100_000);
  });
});

describe("pages that are read concurrently", () => {
  it("get the same vectors as one after the other", async () => {
    const [one, other] = ["the quick brown fox", "the lazy dog and the quick fox"];
    const dictionary = await dictionaryOf("english");
    const first = new LexemeVector(dictionary);
    const second = new LexemeVector(dictionary);

    for (let turn = 0; turn < 3; turn++) {
      first.add(one, "D");
      second.add(other, "B");
    }

    const alone = [new LexemeVector(dictionary), new LexemeVector(dictionary)] as const;
    for (let turn = 0; turn < 3; turn++) alone[0].add(one, "D");
    for (let turn = 0; turn < 3; turn++) alone[1].add(other, "B");
    expect(first.toString()).toBe(alone[0].toString());
    expect(second.toString()).toBe(alone[1].toString());
    expect(first.simhash()).toBe(alone[0].simhash());
  });

  it("keep their words when the table is renewed meanwhile", async () => {
    const dictionary = await dictionaryOf("simple");
    const page = new LexemeVector(dictionary);
    page.add("before between", "D");

    for (let filler = 0; filler < 4; filler++) await vectorOf(distinctWords(20_000, `f${filler}`));
    page.add("before after", "D");

    expect(page.toString()).toBe("'before':1,3 'between':2 'after':4");
  });
});
