/** The word tables are limited, and pages that are read simultaneously share them. */
import { describe, expect, it } from "vitest";
import { dictionaryOf } from "#crawler/extract/dictionaries";
import { wordsKept } from "#crawler/extract/lexeme-table";
import { LexemeVector } from "#crawler/extract/lexemes";

const distinctWords = (count: number, prefix: string) =>
  Array.from({ length: count }, (_, index) => `${prefix}${index.toString(36)}z`).join(" ");

async function vectorOf(text: string, config = "simple"): Promise<LexemeVector> {
  const vector = new LexemeVector(await dictionaryOf(config));
  vector.add(text, "D");
  return vector;
}

describe("words that are kept", () => {
  it("are as many as were decided, whatever pages hold", async () => {
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

  it("don't grow a vector beyond the message, of very many distinct words", async () => {
    const vector = await vectorOf(distinctWords(200_000, "w"));

    expect(vector.toString().length).toBeLessThan(900_000);
    expect(vector.words).toBeLessThan(100_000);
  });
});

describe("pages that are read at the same time", () => {
  it("get the vectors that they get one after the other", async () => {
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

  it("keep their words when the table is renewed in between", async () => {
    const dictionary = await dictionaryOf("simple");
    const page = new LexemeVector(dictionary);
    page.add("before between", "D");

    for (let filler = 0; filler < 4; filler++) await vectorOf(distinctWords(20_000, `f${filler}`));
    page.add("before after", "D");

    expect(page.toString()).toBe("'before':1,3 'between':2 'after':4");
  });
});
