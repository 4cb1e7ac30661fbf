/** What people type, as terms: phrases, or, -not, stop words, and the rules of each language. */
import { expect, it } from "vitest";
import { termArms } from "#coordinator/tell/search/term-arms";

const arm = async (words: string, { title = null as string | null, configuration = "english" } = {}) =>
  (await termArms({ words, title }, [configuration]))[0];
const all = async (words: string, configuration?: string) =>
  (await arm(words, configuration === undefined ? {} : { configuration }))?.all;

it("takes every word, stemmed, and a phrase or a joined word as terms in a row", async () => {
  expect(await all('Ferries "harbour walls" state-of-the-art www.example.org')).toEqual([
    [["ferri"]],
    [["harbour", "wall"]],
    [["state", "of", "the", "art"]],
    [["www", "exampl", "org"]],
  ]);
});

it("takes one of several for `or`, which binds more tightly than the blank", async () => {
  expect(await all("ferry OR boat harbour")).toEqual([[["ferri"], ["boat"]], [["harbour"]]]);
  expect(await all('ferry or "old boat" or ferries')).toEqual([[["ferri"], ["old", "boat"]]]);
});

it("excludes a word or a phrase with a sign before it, not after a dash between words", async () => {
  const excluding = await arm('ferry -boat -"old harbour" e-mail - walk');

  expect(excluding?.none).toEqual([["boat"], ["old", "harbour"]]);
  expect(excluding?.all).toEqual([[["ferri"]], [["e", "mail"]], [["walk"]]]);
});

it("drops stop words outside phrases where other words are left", async () => {
  expect(await all("the ferry of the harbour")).toEqual([[["ferri"]], [["harbour"]]]);
  expect(await all('"the ferry"')).toEqual([[["the", "ferri"]]]);
  expect(await all("the who")).toEqual([[["the"]], [["who"]]]);
  expect(await all("l'hôpital", "french")).toEqual([[["hôpital"]]]);
  expect((await arm("ferry -the"))?.none).toEqual([]);
});

it("makes one arm of the configurations that have the same terms of the words", async () => {
  const arms = await termArms({ words: "ferries", title: null }, ["english", "simple", "danish"]);

  expect(arms.map(({ configurations, all: wanted }) => [configurations, wanted])).toEqual([
    [["english", "danish"], [[["ferri"]]]],
    [["simple"], [[["ferries"]]]],
  ]);
});

it("looks for the words of the title filter, each in the title", async () => {
  expect(await arm("ferry", { title: 'the "old port" ferries' })).toMatchObject({
    all: [[["ferri"]]],
    title: [["old", "port"], ["ferri"]],
  });
});

it("takes scripts without blanks as pairs in a row, and one character as it is", async () => {
  expect(await all("日本語", "simple")).toEqual([[["日本", "本語"]]]);
  expect(await all("日", "simple")).toEqual([[["日"]]]);
});

it("takes `or` for a word only where nothing is before it", async () => {
  expect(await all("or blanc", "simple")).toEqual([[["or"]], [["blanc"]]]);
  expect(await all("ferry or or boat", "simple")).toEqual([[["ferry"], ["boat"]]]);
  expect(await all("-boat or ferry or", "simple")).toEqual([[["ferry"]]]);
});

it("has no arm where the words only exclude", async () => {
  expect(await termArms({ words: '-ferry -"old port"', title: null }, ["english", "simple"])).toEqual([]);
});

it.each([
  ['"ferry harbour', [[["ferri", "harbour"]]]],
  ['ferry"harbour"', [[["ferri"]], [["harbour"]]]],
  ['ferry "" "', [[["ferri"]]]],
  ["“old harbour”", [[["old", "harbour"]]]],
  ["or ferry", [[["ferri"]]]],
  ["ferry or", [[["ferri"]]]],
  ["ferry or or boat", [[["ferri"], ["boat"]]]],
  ["ferry or -boat", [[["ferri"]]]],
  ["-boat or ferry", [[["ferri"]]]],
  ["ferry -boat or walk", [[["ferri"], ["walk"]]]],
  ["ferry & | ! ( ) <-> :* ' \\ -- -", [[["ferri"]]]],
  ["ferry \ud800 \u202e \ufeff", [[["ferri"]]]],
])("understands %s", async (words, wanted) => {
  expect(await all(words)).toEqual(wanted);
});

it("accepts any text", async () => {
  const signs = ['"', "-", "or", " ", "ferry", "“", "日", "'", "\ud800", "the", "é", "\u0301"];
  for (let seed = 0; seed < 3000; seed++) {
    const words = Array.from(
      { length: 1 + (seed % 7) },
      (_, at) => signs[(seed * 7919 + at * at * 31 + at * seed) % signs.length],
    );

    const arms = await termArms({ words: words.join(seed % 2 ? " " : ""), title: null }, ["english"]);
    for (const { all: wanted } of arms) expect(wanted.flat().every((terms) => terms.length > 0)).toBe(true);
  }
});
