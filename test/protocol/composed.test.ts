/** Composing in slices equals composing at once (UAX #15), except for letters with more marks than any has. */
import { expect, it } from "vitest";
import { seededRandom } from "#core/random";
import { composed } from "#protocol/composed";

it("text is composed wherever its letters are, also across the ends of slices", () => {
  const seed = 15;
  const random = seededRandom(seed);
  // With marks of three scripts, Hangul, a character that is composed to another, ones that fall apart, and pairs.
  const parts = [
    ..."aeuoZ 1が각Å…é日",
    "u\u0308",
    "a\u0323\u0302",
    "か\u3099",
    "각".normalize("NFD"),
    "\u212b",
    "\u0958",
    "😀",
    "\u{1d157}\u{1d165}",
  ];
  for (let round = 0; round < 300; round++) {
    const text = Array.from({ length: 700 }, () => parts[Math.floor(random() * parts.length)]!).join("");

    expect(composed(text), `seed ${seed}, round ${round}`).toBe(text.normalize("NFC"));
  }
});

it("a million marks on one letter are taken as they come, in slices", () => {
  const text = `a${"\u0301\u0316".repeat(500_000)}`;

  expect(composed(text)).toHaveLength(text.length - 1);
});

it("half a character is left as it is", () => {
  const text = `${"x".repeat(511)}\udc00\ud83d${"e\u0301".repeat(300)}`;

  expect(composed(text)).toBe(text.normalize("NFC"));
});
