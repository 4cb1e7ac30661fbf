/** Splits and stems text of many languages, and text that was made to cost time. */
import { describe, expect, it } from "vitest";
import {
  maxWordCharacters,
  queryTerms,
  stemmingOf,
  termsIn,
  termText,
  textSearchConfigOf,
  wordsIn,
} from "#core/words/words";

const words = (text: string) => [...wordsIn(text)].map(({ word }) => word);

describe("words", () => {
  it.each([
    ["dotted names and addresses", "@a1.site.example user@b-c.d_e", "a1 site example user b c d e"],
    ["apostrophes", "L'été, don’t, rock'n'roll", "l été don t rock n roll"],
    ["numbers", "1,024 3.5 2026-11-21 v1.2 ٣٤ १२", "1 024 3 5 2026 11 21 v1 2 ٣٤ १२"],
    ["capitals", "STRASSE ΟΔΟΣ İstanbul ẞ", "strasse οδος istanbul ß"],
    ["marks that compose", "e\u0301te\u0301 \u1112\u1161\u11ab", "été 한"],
    ["marks that do not", "हिन्दी बच्चे x\u20dd", "हिन्दी बच्चे x\u20dd"],
    ["invisible characters", "Häuser\u00adzeile می\u200cخواهم", "häuserzeile میخواهم"],
    ["characters outside the basic plane", "𝐀𝐁 x𝐀😀y 𞤀 𠀀𠀁", "𝐀𝐁 x𝐀 y 𞤢 𠀀𠀁 𠀁"],
    ["Han and Kana", "日本語 東京都、ラーメン15杯", "日本 本語 語 東京 京都 都 ラー ーメ メン ン 15 杯"],
    ["marks of Kana", "か\u3099き", "がき き"],
    ["Thai", "ที่นี่", "ที่นี่ นี่"],
    ["Korean, which has blanks", "서울에서 만나요", "서울에서 만나요"],
    ["nothing but signs", "… — <>&; \0 \ud800 \udc00 \u0301", ""],
    ["text around NUL and lone surrogates", "a\0b\ud800c\udc00d", "a b c d"],
  ])("of %s", (_name, text, expected) => {
    expect(words(text).join(" ")).toBe(expected);
  });

  it("say where they are in the text as given", () => {
    const text = "Ein e\u0301te\u0301 in 日本";

    expect([...wordsIn(text)].map(({ from, to }) => text.slice(from, to))).toEqual([
      ...["Ein", "e\u0301te\u0301", "in", "日本", "本"],
    ]);
  });

  it("are cut, and never within a character", () => {
    const long = `${"a".repeat(maxWordCharacters - 1)}𝐀𝐀`;

    expect(words(long)).toEqual(["a".repeat(maxWordCharacters - 1)]);
  });
});

/** A text, a query that finds it, and one that does not. */
const samples: Readonly<Record<string, readonly [text: string, found: string, other: string]>> = {
  arabic: ["ركض الأطفال عبر الغابات، GitHub servers", "الغابة أطفال server", "مدارس"],
  armenian: ["Երեխաները վազում էին անտառներով, GitHub servers", "անտառ server", "լճեր"],
  basque: ["Haurrak kaleetan zehar korrika zebiltzan", "kaleak", "mendiak"],
  catalan: ["Els nens corrien pels carrers de la ciutat", "carrer", "diari"],
  danish: ["Børnene løb gennem skovene og så søer", "skov", "by"],
  dutch: ["De kinderen zagen de grachten", "gracht", "straat"],
  english: ["Generously added news of the well-known crawlers", "generous adding crawler", "subnets"],
  finnish: ["Lapset juoksivat metsien halki", "metsä", "järvi"],
  french: ["L'été, Noël et les ambiguïtés naïves d'élèves", "ambiguïté naïve élève", "œuvre"],
  german: ["Die Lehrerinnen sahen die größten Häuser", "Haus lehrerin groesste", "Straße"],
  greek: ["Οι ψαράδες απλώνουν τα δίχτυα στο λιμάνι, GitHub servers", "ΛΙΜΑΝΙΑ server", "ανεμόμυλος"],
  hungarian: ["A gyerekek átszaladtak az erdőkön", "erdő", "tavak"],
  indonesian: ["Pelajarannya dibacakan olehnya di hutan-hutan", "belajar baca hutan", "danau"],
  irish: ["Rith na páistí trí na coillte", "coillte", "lochanna"],
  italian: ["Il divano era illuminato dalle luci dell'università", "luce università", "diva"],
  norwegian: ["Barna løp gjennom skogene", "skog", "by"],
  portuguese: ["As crianças corriam rapidamente pelas ruas", "criança", "coração"],
  romanian: ["Abonații îmbrăţişau declarațiile ziariştilor", "declaraţie ziariștii", "lac"],
  russian: ["Ещё вчера ребята шли через зелёный лес, GitHub servers", "зеленые леса server", "озеро"],
  simple: ["Zürcher BÄDER", "bäder", "bad"],
  spanish: ["Los niños corrían por las montañas españolas", "montaña español", "señora"],
  swedish: ["Barnen sprang genom skogarna, dålig högtrösten", "skogen", "stad"],
  tamil: ["குழந்தைகள் காடுகளில் ஓடி, GitHub servers", "காடு server", "ஏரி"],
  turkish: ["Çocuklar ormanların içinden koştular", "orman çocuk", "şehir"],
};

describe("terms", () => {
  it.each(Object.entries(samples))("of %s find other forms of a word", async (name, [text, found, other]) => {
    const stemming = await stemmingOf(name);
    const terms = new Set(termText(text, stemming).split(" "));

    expect(queryTerms(found, stemming).filter((term) => !terms.has(term))).toEqual([]);
    expect(queryTerms(other, stemming).filter((term) => terms.has(term))).toEqual([]);
  });

  it("are stems of the newest edition", async () => {
    const stemmings = ["english", "german", "italian", "swedish"].map(stemmingOf);
    const [english, german, italian, swedish] = await Promise.all(stemmings);

    expect(english!.stemOf("added")).toBe("add");
    expect(german!.stemOf("buecher")).toBe(german!.stemOf("bücher"));
    expect(italian!.stemOf("divano")).not.toBe(italian!.stemOf("diva"));
    expect(swedish!.stemOf("förtjänstfullöst")).toBe("förtjänstfullös");
  });

  it("include stop words, which are known by language", async () => {
    const english = await stemmingOf("english");

    expect(termText("To be or not to be", english)).toBe("to be or not to be");
    expect(["the", "not", "crawler"].map(english.isStopWord)).toEqual([true, true, false]);
    expect((await stemmingOf("simple")).isStopWord("the")).toBe(false);
  });

  it("are found in order by a query for a part of the text", async () => {
    const stemming = await stemmingOf("simple");
    const indexed = ` ${termText("@a.b.site.example 日本語学校 第15回", stemming)} `;

    for (const query of ["site.example", "b site", "日本", "本語学", "学校 第15", "回"])
      expect(indexed, query).toContain(` ${queryTerms(query, stemming).join(" ")} `);
    expect(queryTerms("日本語", stemming)).toEqual(["日本", "本語"]);
    expect(queryTerms("日", stemming)).toEqual(["日"]);
    expect(indexed).not.toContain(` ${queryTerms("本日", stemming).join(" ")} `);
  });

  it("of an unknown configuration, whatever its name, are the words themselves", async () => {
    for (const name of ["klingon", "constructor", "__proto__", ""])
      expect(termText("Running Houses", await stemmingOf(name)), name).toBe("running houses");
  });

  it("remain the same while more words occur than are remembered", async () => {
    const stemming = await stemmingOf("english");
    const text = Array.from({ length: 120_000 }, (_, index) => `running${index} houses`).join(" ");

    const terms = new Set([...termsIn(text, stemming)].map(({ term }) => term));

    expect(terms.size).toBe(120_001);
    expect(terms).toContain("hous");
  });
});

it("chooses a language's configuration, and `simple` where there is none", () => {
  expect(["de", "nn", "ja", "hi", "constructor", null].map(textSearchConfigOf)).toEqual([
    ...["german", "norwegian", "simple", "simple", "simple", "simple"],
  ]);
});

it.each([
  ["words", "crawlers running "],
  ["letters", "a"],
  ["Han characters", "日本語"],
  ["NUL", "\0"],
  ["lone surrogates between letters", "\ud800a"],
  ["marks on one letter", "\u0301\u0327"],
  ["marks on one Thai letter", "\u0e31"],
  ["joiners", "\u200d"],
])("reads 5 MB of %s in time in proportion to the length", async (_name, unit) => {
  const stemming = await stemmingOf("english");
  const timeMs = (characters: number) => {
    const text = `ก${unit.repeat(characters / unit.length)}`;
    const startedMs = performance.now();
    let longest = 0;
    for (const { term } of termsIn(text, stemming)) longest = Math.max(longest, term.length);
    expect(longest).toBeLessThanOrEqual(maxWordCharacters);
    return performance.now() - startedMs;
  };
  timeMs(50_000);

  expect(timeMs(5_000_000)).toBeLessThan(40 * (timeMs(500_000) + 20));
});
