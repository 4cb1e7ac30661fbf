import { describe, expect, it } from "vitest";
import { startMark, stopMark } from "#coordinator/tell/search/headline";
import { snippetOf } from "#coordinator/tell/search/search";

const marked = (text: string) => text.replaceAll("[", startMark).replaceAll("]", stopMark);
const shown = (text: string) =>
  snippetOf(marked(text))
    .map((part) => (part.matches ? `[${part.text}]` : part.text))
    .join("");
const filler = "lorem ipsum dolor sit amet ".repeat(30).trim();

describe("a snippet", () => {
  it("of a short text is all of it, with the matches separate", () => {
    expect(shown("The [ferry] leaves the [harbour].")).toBe("The [ferry] leaves the [harbour].");
    expect(snippetOf("")).toEqual([]);
  });

  it("of a long text surrounds its first match, cut between words", () => {
    const text = shown(`${filler} the [ferry] ${filler}`);

    expect(text).toMatch(/^… \w+ .*\bthe \[ferry\] lorem .* …$/);
    expect(text.length).toBeLessThan(260);
  });

  it("begins with the text when the match is there or nothing matches", () => {
    expect(shown(`The [ferry] ${filler}`)).toMatch(/^The \[ferry\] lorem .* …$/);
    expect(shown(filler)).toMatch(/^lorem .* …$/);
  });

  it("of one endless word is cut, too", () => {
    expect(shown("x".repeat(5000)).length).toBeLessThan(260);
  });
});
