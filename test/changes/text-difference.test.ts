/** Where two texts differ: readable places, bounded whatever the texts, and nothing that may not be shown. */
import { expect, test } from "vitest";
import {
  differenceText,
  type IndexedText,
  keptDifference,
  readDifference,
  textDifference,
} from "#coordinator/crawl/changes/text-difference";

const indexed = (text: string, given: Partial<IndexedText> = {}): IndexedText => ({
  ...{ description: "", headings: [], text, snippetCharacters: null },
  ...given,
});

const wordsOf = (count: number, name = "word") => Array.from({ length: count }, (_, at) => `${name}${at}`);
const between = (before: string, after: string) => textDifference(indexed(before), indexed(after));

test("a replaced word is shown between its neighbours", () => {
  expect(between("A day ticket costs 20 euro in summer", "A day ticket costs 25 euro in summer")).toEqual({
    places: [
      {
        ...{ part: "text", before: "A day ticket costs", removed: "20", added: "25" },
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

test("an insertion at the top does not make the end of a text that is cut a change", () => {
  const text = wordsOf(200).join(" ");
  const inserted = `News of today. ${text}`;
  const place = {
    part: "text",
    before: "",
    removed: "",
    added: "News of today.",
    after: wordsOf(6).join(" "),
  };
  const cut = { snippetCharacters: 600 };

  expect(between(text, inserted)?.places).toEqual([place]);
  expect(textDifference(indexed(text, cut), indexed(inserted, cut))?.places).toEqual([place]);
  expect(textDifference(indexed(inserted, cut), indexed(text, cut))?.places).toEqual([
    { ...place, removed: place.added, added: "" },
  ]);
  const long = wordsOf(6000).join(" ");
  expect(between(long, `News of today. ${long}`)?.places).toEqual([place]);
});

test("each place of a long text is shown, and what differs beyond the words that are compared is not", () => {
  const before = wordsOf(6000);
  const after = before.map((word, at) =>
    at === 3 ? "first" : at === 3000 ? "second" : at > 5500 ? "third" : word,
  );
  const found = between(before.join(" "), after.join(" "));

  expect(found?.places.map(({ part, removed, added }) => ({ part, removed, added }))).toEqual([
    { part: "text", removed: "word3", added: "first" },
    { part: "text", removed: "word3000", added: "second" },
  ]);
});

test("no more is reported than a site allows to show of its text", () => {
  const [before, after] = [wordsOf(400).join(" "), `${wordsOf(399).join(" ")} other`];
  const shown = (text: string, snippetCharacters: number) =>
    indexed(text, { snippetCharacters, description: text.slice(-9) });

  expect(textDifference(shown(before, 0), shown(after, 0))).toBeNull();
  expect(textDifference(shown(before, 0), shown(after, 600))).toBeNull();
  const parts = textDifference(shown(before, 50), shown(after, 50))!.places.map(({ part }) => part);
  expect(parts).toEqual(["description"]);
});

test("differences stored by earlier versions, which told two parts of the text apart, are read", () => {
  const kept = JSON.stringify([0, [2, "a", "b", "c", "d"], [3, "e", "f", "g", "h"]]);

  expect(readDifference(kept).places.map(({ part }) => part)).toEqual(["text", "text"]);
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
