import { afterEach, describe, expect, it, vi } from "vitest";
import { canParseUrl } from "#core/ip/url-host";
import { urlKeyOf } from "#core/url-key";

it("says the same however often it is asked, and compiled", () => {
  const wrong = Array.from({ length: 50_000 }, () =>
    canParseUrl("http://b\u00fccher.example/\u00e9t\u00e9"),
  ).filter((isUrl) => !isUrl);

  expect(wrong).toEqual([]);
});

it.each([
  ["//b\u00fccher.example/", "https://example.org/", true],
  ["/caf\u00e9", "https://example.org/", true],
  ["/caf\u00e9", undefined, false],
  ["http://", undefined, false],
  ["https://example.org/", undefined, true],
])("%j below %j: %j", (text, base, isUrl) => {
  expect(canParseUrl(text, base)).toBe(isUrl);
});

describe("a host that nobody can have", () => {
  afterEach(() => void vi.unstubAllGlobals());
  const letters = (count: number) =>
    Array.from({ length: count }, (_, at) => String.fromCodePoint(0x4e00 + at)).join("");
  const dotted = Array.from({ length: 200 }, (_, at) => letters(10 + (at % 3))).join(".");

  it.each([
    [`http://${letters(2000)}/`],
    [` h\tttp:${letters(2000)}`],
    [`//${letters(2000)}/path`],
    [`\\\\${letters(2000)}`],
    [`https://user:secret@${letters(2000)}:8080/`],
    [`https://example.org:x@${letters(2000)}/`],
    [`http://${encodeURIComponent(letters(800))}/`],
    [`http://www.${letters(200)}.example/`],
    [`ftp://${dotted}/`],
  ])("is not parsed, which would take time by the square of its length: %#", (text) => {
    let parsed = 0;
    const RealUrl = URL;
    vi.stubGlobal(
      "URL",
      class extends RealUrl {
        constructor(url: string | URL, base?: string | URL) {
          parsed += 1;
          super(url, base);
        }
      },
    );

    expect(canParseUrl(text, "https://example.org/")).toBe(false);
    expect(urlKeyOf(text)).toBe("not-a-url");
    expect(parsed).toBe(0);
  });

  it.each([
    [`http://${letters(40)}.example/`],
    [`http://${"e\u0301".repeat(40)}.example/`],
    [`http://${encodeURIComponent(letters(20))}.example/`],
    [`http://example.org/${letters(500)}?${letters(500)}#${letters(500)}`],
    [`http://${"u".repeat(300)}@example.org/`],
    [`/${letters(500)}`],
    [`mailto:${letters(500)}`],
  ])("is none of these: %#", (text) => {
    expect(canParseUrl(text, "https://example.org/")).toBe(true);
  });
});
