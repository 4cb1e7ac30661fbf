/** Our lexemes against a real Postgres: the same words, the same positions, and queries that match. */
import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { dictionaryOf, supportedConfigs, textSearchConfigOf } from "#crawler/extract/dictionaries";
import { extractPage } from "#crawler/extract/extract-page";
import { LexemeVector } from "#crawler/extract/lexemes";
import { stopWordsOf } from "#crawler/extract/stop-words";
import { type Database, postgresVersion } from "#db/server-database";
import { testDatabase } from "../../support/database.ts";
import { sharedData } from "../../support/shared-data.ts";

let database: Database;
let majorVersion: number;
beforeAll(async () => {
  database = await testDatabase();
  majorVersion = await postgresVersion(database.pool);
});
afterAll(() => database.close());

it("a page whose letters are written with marks has the lexemes of one where they are composed", async () => {
  const text = "Zürcher Bäder öffnen früh; Ärzte prüfen das Wasser häufig.";
  const { page } = await extractPage({
    url: "https://site.example/",
    bytes: Buffer.from(`<html lang="de"><p>${text.normalize("NFD")}`),
    contentType: "text/html; charset=utf-8",
    contentLanguage: null,
    robotsTag: undefined,
    postgresVersion: majorVersion,
    quiet: async () => {},
  });

  const { rows } = await database.pool.query(
    `select $1::tsvector::text as ours, to_tsvector('german', $2)::text as theirs,
       $1::tsvector @@ websearch_to_tsquery('german', 'Zürcher Ärzte') as found`,
    [page.lexemes, text],
  );
  expect(rows[0]).toMatchObject({ ours: rows[0].theirs, found: true });
});

async function ours(config: string, text: string): Promise<string> {
  const vector = new LexemeVector(await dictionaryOf(config, majorVersion));
  vector.add(text, "D");
  return vector.toString();
}

/** Both vectors as Postgres prints them. */
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
    "The well-known crawlers don't sleep; they're probing 1,024 subnets at 3.5 ms (v1.2.3), see www.site.example/a?b=c or mail ops@site.example. Generously, Ms. O'Neil's T-shirt cost $5.00 on 2026-11-21, and/or -7 degrees. COVID-19 in the U.S.A.",
  german:
    "Die größten Straßen führten die Häuserzeilen entlang; viele Menschen übten sich in E-Mail-Verkehr und Geschäftsführungen. Äpfel, Öl, Übermut, 12,5 Prozent.",
  french:
    "L'été dernier, les ambiguïtés naïves d'aujourd'hui n'étaient pas si évidentes que ça: Noël approchait, les élèves lisaient des œuvres complètes. Rendez-vous à 18h30.",
  spanish:
    "Los niños corrían rápidamente por las montañas españolas, mientras las señoras leían periódicos antiguos.",
  italian:
    "Le città più belle d'Italia erano illuminate dalle luci notturne, e gli amici parlavano dell'università.",
  portuguese:
    "As crianças corriam rapidamente pelas ruas, enquanto os corações das nações batiam. Não há razões.",
  dutch: "De kinderen liepen langzaam door de straten van Amsterdam en zagen de mooiste bruggen en grachten.",
  swedish: "Barnen sprang genom skogarna och såg de vackraste sjöarna när solen gick ned över städerna.",
  norwegian: "Barna løp gjennom skogene og så de vakreste innsjøene mens solen gikk ned over byene.",
  danish: "Børnene løb gennem skovene og så de smukkeste søer, mens solen gik ned over byerne.",
  finnish: "Lapset juoksivat metsien halki ja näkivät kauneimmat järvet, kun aurinko laski kaupunkien ylle.",
  hungarian: "A gyerekek átszaladtak az erdőkön, és meglátták a legszebb tavakat, amikor a nap lenyugodott.",
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

describe("every configuration that we make lexemes for", () => {
  it("has a sample here", () => {
    expect(Object.keys(samples).sort()).toEqual([...supportedConfigs].sort());
  });

  it("is none of Hindi's and Nepali's, which are left to simple", () => {
    expect(["hi", "ne", "ja", null].map(textSearchConfigOf)).toEqual(Array(4).fill("simple"));
  });

  it.each(Object.entries(samples))(
    "%s: the vector is the one that to_tsvector makes",
    async (config, text) => {
      const vectors = await both(config, text);

      expect(vectors.ours).toBe(vectors.theirs);
    },
  );

  it.each(supportedConfigs)("%s: leaves out exactly the server's stop words", async (config) => {
    const words = [...stopWordsOf(config)];

    const kept = await database.pool.query(
      "select word from unnest($2::text[]) word where to_tsvector($1::regconfig, word) <> ''",
      [config, words],
    );

    expect(kept.rows).toEqual([]);
  });
});

describe("a page's vector", () => {
  it("casts with weights, and queries match stems, compounds and hosts", async () => {
    const vector = new LexemeVector(await dictionaryOf("english"));
    vector.add("Crawling near", "A");
    vector.add("Delegated subnets", "B");
    vector.add("The state-of-the-art probes of site.example", "D");

    const answer = await database.pool.query(
      "select $1::tsvector::text as text, q as query, $1::tsvector @@ to_tsquery('english', q) as found from unnest($2::text[]) q",
      [vector.toString(), ["crawls:a", "subnet:b", "probing", "state-of-the-art", "site.example", "crawl:d"]],
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

  it("of a very long text keeps tsvector's bounds", async () => {
    const words = Array.from({ length: 40_000 }, (_, index) => `word${index % 3000} again`).join(" ");

    const vectors = await both("english", words);

    expect(vectors.ours).toBe(vectors.theirs);
  });

  it("with quotes and backslashes around words still casts", async () => {
    const vectors = await both("simple", "it's a \\ 'quoted' \\' path C:\\temp");

    expect(vectors.ours).toBe(vectors.theirs);
  });
});

const manifest = sharedData("suites/pages/manifest.json");

describe.skipIf(manifest === null)("the texts of real pages", () => {
  it("have at least 99.9 % of their lexemes in common with to_tsvector", async () => {
    const pages = JSON.parse(readFileSync(manifest!, "utf8")) as {
      human?: { mainText?: string; lang?: string };
    }[];
    let lexemes = 0;
    let different = 0;

    for (const { human } of pages) {
      if (!human?.mainText) continue;
      const config =
        { de: "german", fr: "french", es: "spanish" }[(human.lang ?? "").slice(0, 2)] ?? "english";
      const answer = await database.pool.query(
        "select a.lexeme as ours, b.lexeme as theirs from unnest($1::tsvector) a full join unnest(to_tsvector($2::regconfig, $3)) b using (lexeme)",
        [await ours(config, human.mainText), config, human.mainText],
      );
      lexemes += answer.rows.length;
      different += answer.rows.filter((row) => row.ours === null || row.theirs === null).length;
    }

    expect(lexemes).toBeGreaterThan(10_000);
    expect(different / lexemes).toBeLessThan(0.001);
  });
});
