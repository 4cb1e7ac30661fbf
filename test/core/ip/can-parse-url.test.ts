import { expect, it } from "vitest";
import { canParseUrl } from "#core/ip/can-parse-url";

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
