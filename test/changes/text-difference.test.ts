/** Where two texts differ: readable places, bounded whatever the texts, and nothing that may not be shown. */
import { expect, test } from "vitest";
import {
  differenceText,
  type IndexedText,
  keptDifference,
  readDifference,
  textDifference,
} from "#coordinator/crawl/changes/text-difference";

/** As the index stores a text of plain words: each a term, no stop words. */
function indexed(text: string, given: Partial<IndexedText> = {}): IndexedText {
  const positions = new Map<string, number[]>();
  for (const [at, word] of text.split(/\s+/).entries())
    positions.set(word, [...(positions.get(word) ?? []), at + 1]);
  const lexemes = [...positions]
    .map(([word, at]) => `'${word.replaceAll("'", "''")}':${at.join(",")}`)
    .join(" ");
  return {
    ...{ description: "", headings: [], textSearchConfig: "simple" },
    excerpt: text.slice(0, 600),
    lexemes,
    ...given,
  };
}

const wordsOf = (count: number, name = "word") => Array.from({ length: count }, (_, at) => `${name}${at}`);
const between = (before: string, after: string) => textDifference(indexed(before), indexed(after));

test("a replaced word is shown between its neighbours", () => {
  expect(between("A day ticket costs 20 euro in summer", "A day ticket costs 25 euro in summer")).toEqual({
    places: [
      {
        ...{ part: "beginning", before: "A day ticket costs", removed: "20", added: "25" },
        after: "euro in summer",
      },
    ],
    more: 0,
  });
});

test("the same words with other blanks are the same", () => {
  expect(between("one  two\nthree", "one two three")).toBeNull();
});

test("changes with hardly a word between them are one place, others two", () => {
  const before = "a b c d e f g h i j k l m n";
  expect(between(before, before.replace("c", "C").replace("e", "E"))?.places).toMatchObject([
    { removed: "c d e", added: "C d E" },
  ]);
  expect(between(before, before.replace("c", "C").replace("k", "K"))?.places).toHaveLength(2);
});

test("scripts without blanks are compared by character", () => {
  expect(between("フェリーは毎朝七時に出発します", "フェリーは毎朝八時に出発します")?.places).toMatchObject([
    { before: "ェリーは毎朝", removed: "七", added: "八" },
  ]);
});

test("an insertion at the top does not make the end of the excerpt a change", () => {
  const text = wordsOf(200).join(" ");
  const found = between(text, `News of today. ${text}`);

  expect(found?.places).toEqual([
    { part: "beginning", before: "", removed: "", added: "News of today.", after: wordsOf(6).join(" ") },
  ]);
});

test("behind the excerpt the terms are compared, and nothing is reported twice", () => {
  const before = wordsOf(400);
  const after = before.map((word, at) => (at === 3 ? "first" : at === 300 ? "second" : word));
  const found = between(before.join(" "), after.join(" "));

  expect(found?.places.map(({ part, removed, added }) => ({ part, removed, added }))).toEqual([
    { part: "beginning", removed: "word3", added: "first" },
    { part: "further-down", removed: "word300", added: "second" },
  ]);
});

test("a quote within a term is read as written", () => {
  const before = [...wordsOf(150), "it's", ...wordsOf(20, "end")];
  const after = before.map((word) => (word === "it's" ? "o'clock" : word));

  expect(between(before.join(" "), after.join(" "))?.places).toMatchObject([
    { removed: "it's", added: "o'clock" },
  ]);
});

test("no more is reported than a site allows to show of its text", () => {
  const [before, after] = [wordsOf(400).join(" "), wordsOf(400, "other").join(" ")];
  const shown = (text: string, most: number) => indexed(text, { excerpt: text.slice(0, most) });

  expect(textDifference(shown(before, 0), shown(after, 0))).toBeNull();
  expect(textDifference(shown(before, 0), shown(after, 600))).toBeNull();
  const parts = textDifference(shown(before, 50), shown(after, 50))!.places.map(({ part }) => part);
  expect(parts).toEqual(["beginning"]);
});

test("what is stored is small, whatever the texts", () => {
  const words = wordsOf(4000);
  const others: readonly (readonly string[])[] = [
    [...words].reverse(),
    words.map((word, at) => (at % 9 === 0 ? `${word}x` : word)),
    words.map((_, at) => `a${at % 3}`),
    ["x".repeat(100_000)],
  ];
  for (const other of others) {
    const found = between(words.join(" "), other.join(" "))!;
    expect(found.places.length).toBeGreaterThan(0);
    expect(keptDifference(found).length).toBeLessThan(3500);
    expect(readDifference(keptDifference(found))).toEqual(found);
  }
});

test("in one line it looks like wdiff", () => {
  const found = between("A ticket costs 20 euro", "A ticket costs 25 euro");
  expect(differenceText(found!)).toBe("A ticket costs [-20-] {+25+} euro");
});
