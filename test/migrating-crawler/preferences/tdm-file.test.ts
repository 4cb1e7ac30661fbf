/** `/.well-known/tdmrep.json` (TDM Reservation Protocol, section "TDM File on the Origin Server"). */
import { describe, expect, it } from "vitest";
import { maxTdmFileBytes, parseTdmFile, TdmRules } from "#crawler/preferences/tdm-reservation";
import { type PreferenceAnswer, useAnswers } from "#protocol/preferences";

const rulesOf = (json: unknown) => new TdmRules(parseTdmFile(Buffer.from(JSON.stringify(json))));

function answerTo(rules: TdmRules, path: string): PreferenceAnswer | undefined {
  return useAnswers(rules.stated(path))["text-and-data-mining"];
}

describe("the rules of a tdmrep.json", () => {
  const rules = rulesOf([
    { location: "/docs/", "tdm-reservation": 1 },
    { location: "/site/html/", "tdm-reservation": 1, "tdm-policy": "https://site.example/policy.json" },
    { location: "/site/images/*.jpg$", "tdm-reservation": 0 },
    { location: "/Caf%C3%A9", "tdm-reservation": 1 },
    { location: "/docs/open", "tdm-reservation": 0 },
  ]);
  const rows: readonly [path: string, answer: PreferenceAnswer | undefined][] = [
    ["/docs/a.pdf", "denied"],
    // The first matching rule counts as the most specific, whatever its length.
    ["/docs/open", "denied"],
    ["/site/html/", "licensed"],
    ["/site/images/x/a.jpg", "allowed"],
    ["/site/images/a.jpg?x", undefined],
    ["/docs", undefined],
    // Paths are case-sensitive and compared in one percent-encoding.
    ["/DOCS/a", undefined],
    ["/Caf%c3%a9/menu", "denied"],
    ["/%64ocs/a", "denied"],
  ];
  for (const [path, answer] of rows)
    it(`for ${path}: ${answer ?? "nothing"}`, () => {
      expect(answerTo(rules, path)).toBe(answer);
    });

  it("name the rule in the statement", () => {
    expect(rules.stated("/site/html/a")).toEqual([
      {
        ...{ standard: "tdm", place: "tdmrep.json", uses: ["text-and-data-mining"], answer: "licensed" },
        text: "/site/html/ tdm-reservation: 1, tdm-policy: https://site.example/policy.json",
      },
    ]);
  });
});

describe("an invalid tdmrep.json", () => {
  const rows: readonly [name: string, body: string][] = [
    ["HTML", "<!doctype html>"],
    ["one rule without its brackets", '{"location":"/","tdm-reservation":1}'],
    ["rules without required members", '[{"location":"/"},{"tdm-reservation":1},null,7,[]]'],
    ["invalid values", '[{"location":"/","tdm-reservation":2}]'],
    ["a location that is no string", '[{"location":{"a":[1]},"tdm-reservation":1}]'],
    ["a nest of brackets", "[".repeat(60_000)],
    ["nothing", ""],
  ];
  for (const [name, body] of rows)
    it(`reserves nothing: ${name}`, () => {
      expect(answerTo(new TdmRules(parseTdmFile(Buffer.from(body))), "/")).toBeUndefined();
    });

  it("reserves everything when it is too long", () => {
    const rules = new TdmRules(parseTdmFile(Buffer.alloc(maxTdmFileBytes + 1, " ")));

    expect(answerTo(rules, "/any")).toBe("denied");
  });

  it("with too many rules reserves what no kept rule names if a dropped one reserves", () => {
    const open = Array.from({ length: 600 }, (_, n) => ({ location: `/${n}/`, "tdm-reservation": 0 }));

    expect(answerTo(rulesOf(open), "/599/")).toBeUndefined();
    const rules = rulesOf([...open, { location: "/secret", "tdm-reservation": 1 }]);
    expect(answerTo(rules, "/secret")).toBe("denied");
    expect(answerTo(rules, "/1/")).toBe("allowed");
    expect(rules.rules).toHaveLength(501);
  });
});
