import { expect, it } from "vitest";
import { type Quotable, snippetOf } from "#coordinator/tell/search/snippet";
import { termArms } from "#coordinator/tell/search/term-arms";
import { stemmingOf } from "#core/words/words";

const filler = "lorem ipsum dolor sit amet ".repeat(30).trim();

async function parts(words: string, page: string | Partial<Quotable>, configuration = "english") {
  const whole = { text: "", description: "", snippetCharacters: null };
  const [arm] = await termArms({ words, title: null }, [configuration]);
  const quotable = { ...whole, ...(typeof page === "string" ? { text: page } : page) };
  return snippetOf(quotable, arm!, await stemmingOf(configuration));
}
const shown = async (...args: Parameters<typeof parts>) =>
  (await parts(...args)).map((part) => (part.matches ? `[${part.text}]` : part.text)).join("");

it("is all of a short text on one line, with the forms of the words marked", async () => {
  expect(await shown("ferry harbour", "The ferries leave\nthe Harbour, by ferry-boat.")).toBe(
    "The [ferries] leave the [Harbour], by [ferry]-boat.",
  );
  expect(await parts("ferry", "")).toEqual([]);
});

it("is where most of the words stand together in a long text, cut between words", async () => {
  const text = await shown("ferry harbour", `A ferry. ${filler} the harbour of the ferry ${filler}`);

  expect(text).toMatch(/^… .*\bthe \[harbour\] of the \[ferry\] lorem .* …$/);
  const written = `… the [harbour] of the [ferry] ${filler}`.split(" ");
  expect(text.split(" ").filter((word) => !written.includes(word))).toEqual([]);
  expect(text.length).toBeLessThan(260);
});

it("begins with the text where nothing matches or the words stand there", async () => {
  expect(await shown("ferry", `The ferry ${filler}`)).toMatch(/^The \[ferry\] lorem .* …$/);
  expect(await shown("ferry", filler)).toMatch(/^lorem .* …$/);
});

it("does not mark the common words of a phrase, nor excluded words", async () => {
  expect(await shown('"state of the art" -walk', "The state of the art of the walk.")).toBe(
    "The [state] of the [art] of the walk.",
  );
  expect(await shown("the who", "The Who, live.")).toBe("[The] [Who], live.");
});

it("is the description where the text has none of the words", async () => {
  const description = "By ferry to the islands.";

  expect(await shown("ferry", { text: "Timetable.", description })).toBe("By [ferry] to the islands.");
  expect(await shown("island", { text: "An island.", description })).toBe("An [island].");
  expect(await shown("boat", { text: "", description })).toBe(description);
});

it.each([0, 1, 9, 10, 25, 100])(
  "is at most the %i characters that the page allows",
  async (snippetCharacters) => {
    for (const page of [
      { text: `${filler} the ferry ${filler}` },
      { text: "The ferry leaves at seven." },
      { description: filler },
    ]) {
      const found = await parts("ferry", { ...page, snippetCharacters });
      const quoted = found.map(({ text }) => text).filter((text) => text !== "… " && text !== " …");

      expect(quoted.join("").length).toBeLessThanOrEqual(snippetCharacters);
      if (snippetCharacters === 0) expect(found).toEqual([]);
    }
  },
);

it("of one endless word, or of pairs of code units, is cut between characters", async () => {
  expect((await shown("ferry", "x".repeat(5000))).length).toBeLessThan(260);
  for (const lead of ["", "a"]) {
    const text = await shown("ferry", `${lead}${"😀".repeat(300)} ferry ${"😀".repeat(300)}`);
    expect(text).toContain("[ferry]");
    expect(() => encodeURIComponent(text)).not.toThrow();
  }
});

it("marks in scripts without blanks what was typed, and no more", async () => {
  expect(await shown("日本語", "新しい日本語の本。日本と英語。", "simple")).toBe(
    "新しい[日本語]の本。[日本]と英語。",
  );
  expect(await shown("語", "日本語の本。", "simple")).toBe("日本[語]の本。");
});

it("marks words by the rules of the page's language", async () => {
  expect(await shown("Häfen", "Der Hafen und die HÄFEN.", "german")).toBe("Der [Hafen] und die [HÄFEN].");
});
