/** Statements about page uses in headers, metas and licenses, by the rules of each standard. */
import { describe, expect, it } from "vitest";
import { askedPrice } from "#crawler/fetch/fetch-page";
import { contentSignal, contentUsage, robotsWords } from "#crawler/preferences/content-usage";
import { inlineLicense, licenseLinks } from "#crawler/preferences/rsl";
import { boundedValues, mergedStatements } from "#crawler/preferences/statements";
import {
  maxTdmFileBytes,
  parseTdmFile,
  TdmRules,
  tdmReservation,
} from "#crawler/preferences/tdm-reservation";
import {
  maxPreferences,
  maySearch,
  type PreferenceAnswer,
  type StatedPreference,
  statedPreference,
  useAnswers,
} from "#protocol/preferences";

type Answers = ReturnType<typeof useAnswers>;

/** The conclusion of the statements, each of which fits the message. */
function answersOf(stated: readonly StatedPreference[]): Answers {
  for (const one of stated) statedPreference.parse(one);
  return useAnswers(stated);
}

describe("Content-Signal", () => {
  const rows: readonly [value: string, answers: Answers][] = [
    ["search=yes, ai-train=no", { search: "allowed", "ai-train": "denied" }],
    ["search=yes,ai-train=no,use=reference", { search: "allowed", "ai-train": "denied" }],
    ["SEARCH = No", { search: "denied" }],
    ["ai-input=no", { "ai-input": "denied" }],
    // The level that forbids storing also denies an index.
    ["search=yes, use=immediate", { search: "denied" }],
    ["use=full", {}],
    // Denied wins a contradiction, in any order.
    ["search=yes, search=no", { search: "denied" }],
    ["search=no, search=yes", { search: "denied" }],
    // Values that the policy lacks are ignored.
    ["search=maybe, ai-train=no", { "ai-train": "denied" }],
    ["search", {}],
    ["", {}],
  ];
  for (const [value, answers] of rows)
    it(`${JSON.stringify(value)} comes to ${JSON.stringify(answers)}`, () => {
      expect(answersOf(contentSignal(value, "header"))).toEqual(answers);
    });

  it("a contradictory text is one denying statement", () => {
    expect(contentSignal("search=yes, search=no", "header")).toMatchObject([
      { uses: ["search"], answer: "denied" },
    ]);
  });

  it("keeps an unknown text, which denies nothing", () => {
    const stated = contentSignal("serch=no", "robots.txt");

    expect(stated).toEqual([
      { standard: "content-signal", place: "robots.txt", uses: [], answer: "allowed", text: "serch=no" },
    ]);
    expect(maySearch(stated)).toBe(true);
  });
});

describe("Content-Usage (draft-ietf-aipref-vocab-08 section 6)", () => {
  const rows: readonly [value: string, answers: Answers][] = [
    ["train-ai=n, search=y", { "ai-train": "denied", search: "allowed" }],
    ["ai-use=n", { "ai-input": "denied" }],
    ["search=n;why=later", { search: "denied" }],
    // Section 6.5: a value other than the token y or n says nothing.
    ['search="n"', {}],
    ["search", {}],
    ["search=no", {}],
    ["search=?0, train-ai=(a b);x=1, ai-use=n", { "ai-input": "denied" }],
    // Labels of earlier and later drafts are ignored (section 6.4).
    ["bots=n, train-genai=n", {}],
    // RFC 9651 section 4.2.2: keys are in lower case and a comma needs a following member; otherwise the field is
    // invalid.
    ["Search=n", {}],
    ["search=n,", {}],
    ["search=n train-ai=n", {}],
    ["search=n, =", {}],
    // A departure: the draft takes the last value of a key, we take the strictest.
    ["search=n, search=y", { search: "denied" }],
    ["train-ai;allow=n, train-ai=y", { "ai-train": "allowed" }],
  ];
  for (const [value, answers] of rows)
    it(`${JSON.stringify(value)} comes to ${JSON.stringify(answers)}`, () => {
      expect(answersOf(contentUsage(value, "header"))).toEqual(answers);
    });
});

describe("tdm-reservation", () => {
  const rows: readonly [reservation: string | string[], policy: string | undefined, answers: Answers][] = [
    ["1", undefined, { "text-and-data-mining": "denied" }],
    ["1", "https://site.example/policy", { "text-and-data-mining": "licensed" }],
    ["0", "https://site.example/policy", { "text-and-data-mining": "allowed" }],
    // Any other value is ignored.
    ["yes", undefined, {}],
    ["", undefined, {}],
    // A reservation on any of several lines applies, even when a proxy joined them.
    [["0", "1"], undefined, { "text-and-data-mining": "denied" }],
    ["0, 1", undefined, { "text-and-data-mining": "denied" }],
  ];
  for (const [reservation, policy, answers] of rows)
    it(`${JSON.stringify(reservation)} with policy ${policy} comes to ${JSON.stringify(answers)}`, () => {
      expect(answersOf(tdmReservation({ reservation, policy }, "header"))).toEqual(answers);
    });

  it("does not concern search", () => {
    expect(maySearch(tdmReservation({ reservation: "1", policy: undefined }, "meta"))).toBe(true);
  });
});

describe("robots words", () => {
  it("deny training, deny an unknown use, or say nothing", () => {
    const stated = robotsWords(["noai", "noimageai", "noai", "nofollow"], "meta");

    expect(stated).toEqual([
      { standard: "robots-words", place: "meta", uses: ["ai-train"], answer: "denied", text: "noai" },
      { standard: "robots-words", place: "meta", uses: [], answer: "denied", text: "noimageai" },
    ]);
  });
});

describe("RSL 1.0", () => {
  const page = new URL("https://site.example/news/a?b");
  const rsl = (content: string) => `<rsl xmlns="https://rslstandard.org/rsl">${content}</rsl>`;

  it("a named license counts as licensed for unknown uses and does not restrict search", () => {
    const stated = licenseLinks([
      '</style.css>; rel=preload, <https://site.example/license.xml>; rel="license"; type="application/rsl+xml"',
      '<https://creativecommons.example/by>; rel="license"',
    ]);

    expect(stated).toEqual([
      {
        ...{ standard: "rsl", place: "header", uses: [], answer: "licensed" },
        text: "https://site.example/license.xml",
      },
    ]);
    expect(maySearch(stated)).toBe(true);
  });

  const rows: Readonly<Record<string, readonly [content: string, answers: Answers]>> = {
    "prohibits and permits": [
      '<content url="/"><license><permits type="usage">search</permits><prohibits type="usage">ai-train</prohibits></license></content>',
      { search: "allowed", "ai-train": "denied" },
    ],
    "a use for a payment is licensed": [
      '<content url=""><license><permits type="usage">search, ai-input</permits><payment type="crawl"><amount ' +
        'currency="USD">0.01</amount></payment></license></content>',
      { search: "licensed", "ai-input": "licensed" },
    ],
    "free use from a license server is also licensed": [
      '<content url="/" server="https://l.example"><license><permits type="usage">search</permits><payment type="free"/></license></content>',
      { search: "licensed" },
    ],
    "all uses": [
      '<rsl:content url="https://site.example/news/*"><rsl:license><rsl:prohibits type="usage">all</rsl:prohibits></rsl:license></rsl:content>',
      { search: "denied", "ai-input": "denied", "ai-train": "denied", "text-and-data-mining": "denied" },
    ],
    "content of another path or site": [
      '<content url="/shop/"><license><prohibits type="usage">search</prohibits></license></content><content ' +
        'url="https://other.example/"><license><prohibits type="usage">search</prohibits></license></content>',
      {},
    ],
    "restrictions by place, and comments": [
      '<content url="/"><!-- <license><prohibits type="usage">search</prohibits></license> --><license>' +
        '<prohibits type="geo">search</prohibits></license></content>',
      {},
    ],
    "the stricter of two licenses": [
      '<content url="/"><license><prohibits type="usage">search</prohibits></license><license><permits type="usage">search</permits></license></content>',
      { search: "denied" },
    ],
  };
  for (const [name, [content, answers]] of Object.entries(rows))
    it(`in the page: ${name}`, () => {
      expect(answersOf(inlineLicense(rsl(content), page))).toEqual(answers);
    });
});

describe("the price of a 402", () => {
  const offer = (json: unknown) => Buffer.from(JSON.stringify(json)).toString("base64");
  const usdc = { amount: "10000", network: "eip155:84532", extra: { name: "USDC" } };
  const rows: readonly [name: string, headers: Record<string, string | string[]>, price: string | null][] = [
    ["crawler-price", { "crawler-price": "USD 0.01" }, "USD 0.01"],
    ["crawler-price before x402", { "crawler-price": "USD 1", "payment-required": offer({}) }, "USD 1"],
    [
      "x402",
      { "payment-required": offer({ x402Version: 2, accepts: [usdc] }) },
      "10000 USDC on eip155:84532 (x402)",
    ],
    ["no offer", { "payment-required": offer({ accepts: [] }) }, null],
    ["no base64, no JSON", { "payment-required": "%%%" }, null],
    ["none", {}, null],
    ["a megabyte of price", { "crawler-price": "9".repeat(1e6) }, "9".repeat(80)],
    ["a megabyte of offer", { "payment-required": "A".repeat(1e6) }, null],
  ];
  for (const [name, headers, price] of rows)
    it(name, () => {
      expect(askedPrice(headers)).toBe(price);
    });
});

describe("what is hostile", () => {
  const page = new URL("http://site.example/");

  it("headers of a megabyte are cut between two members", () => {
    const value = `search=no, ${"x=yes, ".repeat(150_000)}`;

    const stated = boundedValues(value).flatMap((one) => contentSignal(one, "header"));

    expect(answersOf(stated)).toEqual({ search: "denied" });
    expect(stated[0]!.text).toMatch(/^search=no, x=yes, .{230,} x=yes.*… of \d+ characters$/);
    expect(boundedValues(Array.from({ length: 10_000 }, () => "search=no"))).toHaveLength(50);
  });

  it("an overlong value without a comma says nothing", () => {
    expect(boundedValues("n".repeat(1e6))).toEqual([""]);
  });

  it("control characters and half characters are removed", () => {
    const [stated] = contentSignal("search=no\r\n\0evil: 1\ud800", "header");

    expect(stated!.text).toBe("search=no evil: 1\ufffd");
  });

  it("of too many statements those that deny most stay, in order", () => {
    const allowed = Array.from({ length: 40 }, (_, n) =>
      contentSignal(`search=yes, n=${n}`, "header"),
    ).flat();
    const denied = contentSignal("search=no", "header");

    const merged = mergedStatements([...allowed, ...allowed, ...denied]);

    expect(merged).toHaveLength(maxPreferences);
    expect(merged.at(-1)).toEqual(denied[0]);
    expect(maySearch(merged)).toBe(false);
  });

  it("users and passwords in URLs are removed", () => {
    const [stated] = licenseLinks([
      '<https://anna:secret@x.example/license.xml>; rel="license"; type="application/rsl+xml"',
    ]);

    expect(stated?.text).toBe("https://x.example/license.xml");
  });

  it("a huge inline license is read in part", () => {
    const nested = `${"<content url='/'>".repeat(1e6)}<license><prohibits type="usage">search</prohibits></license>`;

    for (const xml of [nested, "<!--".repeat(1e6), "<".repeat(1e6)]) {
      const [stated, ...more] = inlineLicense(xml, page);
      expect(stated).toMatchObject({ uses: [], answer: "licensed" });
      expect(more).toEqual([]);
    }
  });
});

// `/.well-known/tdmrep.json` (TDM Reservation Protocol, section "TDM File on the Origin Server").

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
