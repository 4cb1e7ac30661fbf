/** Statements about page uses in robots.txt: Content-Signal, Content-Usage by path, License. */
import { describe, expect, it } from "vitest";
import { parseRobots, robotsVerdict } from "#crawler/fetch/robots-rules";
import { maxUseLines, usesOfPath } from "#crawler/fetch/robots-uses";
import { useAnswers } from "#protocol/preferences";

const statedIn = (file: string, path: string) => usesOfPath(parseRobots(file, "Nearcrawl").uses, path);
const answersIn = (file: string, path: string) => useAnswers(statedIn(file, path));

describe("Content-Usage rules (draft-ietf-aipref-attach-05 section 3)", () => {
  const byPath = `User-Agent: *
Allow: /
Disallow: /never/
Content-Usage: train-ai=n
Content-Usage: /ai-ok/ train-ai=y
Content-Usage: /ai-ok/*.pdf$ train-ai=n, search=n

User-Agent: ExampleBot
Content-Usage: train-ai=y
`;
  const rows: readonly [file: string, path: string, answers: ReturnType<typeof useAnswers>][] = [
    [byPath, "/test", { "ai-train": "denied" }],
    [byPath, "/ai-ok/test", { "ai-train": "allowed" }],
    // Only the longest match applies.
    [byPath, "/ai-ok/a.pdf", { "ai-train": "denied", search: "denied" }],
    // Section 3.1: all rules of the same path apply, the strictest wins, in any order.
    ["user-agent: *\nContent-Usage: /a search=y\nContent-Usage: /a search=n\n", "/a", { search: "denied" }],
    // Section 3.2: a value without a leading slash is not a path.
    ["User-agent: *\ncontent-usage : \tsearch=n # no index\n", "/", { search: "denied" }],
    ["User-agent: *\nContent-Usage: /a\tsearch=n\n", "/a/b", { search: "denied" }],
    ["User-agent: *\nContent-Usage: /caf%C3%A9 search=n\n", "/caf%c3%a9", { search: "denied" }],
    // A path without a preference states nothing.
    ["User-agent: *\nContent-Usage: /a\n", "/a", {}],
    // Our group replaces the one for all crawlers.
    ["User-agent: *\nContent-Usage: search=n\n\nUser-agent: nearcrawl\nAllow: /\n", "/", {}],
  ];
  for (const [file, path, answers] of rows)
    it(`${path} in ${JSON.stringify(file.slice(0, 60))} … comes to ${JSON.stringify(answers)}`, () => {
      expect(answersIn(file, path)).toEqual(answers);
    });

  it("a rule ends a run of User-agent lines, as Allow and Disallow do", () => {
    const rules = parseRobots(
      "User-agent: *\nContent-Signal: search=yes\nUser-agent: OtherBot\nDisallow: /\n",
      "Nearcrawl",
    );

    expect(robotsVerdict(rules, "/").allowed).toBe(true);
  });

  it("reports the line of each statement", () => {
    expect(statedIn(byPath, "/ai-ok/x")).toMatchObject([
      { line: 5, text: "/ai-ok/ train-ai=y", place: "robots.txt" },
    ]);
  });
});

describe("Content-Signal lines", () => {
  const rows: readonly [file: string, path: string, answers: ReturnType<typeof useAnswers>][] = [
    [
      "User-agent: *\nContent-Signal: search=yes, ai-train=no\nAllow: /\n",
      "/a",
      { search: "allowed", "ai-train": "denied" },
    ],
    // Lines before any group apply to all, in addition to the group's own.
    [
      "Content-Signal: search=no\nUser-agent: Nearcrawl\nContent-Signal: ai-train=no\n",
      "/",
      { search: "denied", "ai-train": "denied" },
    ],
    ["User-agent: OtherBot\nContent-Signal: search=no\n", "/", {}],
    // Two groups of one agent are merged.
    [
      "User-agent: *\nContent-signal: search=yes\n\nUser-agent: *\nContent-signal: search=no\n",
      "/",
      { search: "denied" },
    ],
    ["User-agent: *\nContent-Signal: /private search=no\n", "/private/a", { search: "denied" }],
    ["User-agent: *\nContent-Signal: /private search=no\n", "/open", {}],
  ];
  for (const [file, path, answers] of rows)
    it(`${path} in ${JSON.stringify(file.slice(0, 60))} … comes to ${JSON.stringify(answers)}`, () => {
      expect(answersIn(file, path)).toEqual(answers);
    });
});

describe("License lines (RSL 1.0)", () => {
  const licensesIn = (file: string) =>
    statedIn(file, "/")
      .map(({ text }) => text)
      .join(" ");
  const [all, group] = ["https://s.example/all.xml", "https://s.example/group.xml"];

  const rows: Readonly<Record<string, readonly [file: string, licenses: string]>> = {
    "before any group apply to all": [`License: ${all}\nUser-agent: Nearcrawl\nAllow: /\n`, all],
    "in a group apply to that group only": [`User-agent: OtherBot\nLicense: ${group}\nDisallow: /\n`, ""],
    "of our group replace those for all": [`License: ${all}\nUser-agent: *\nLicense: ${group}\n`, group],
    "of another group replace nothing": [
      `License: ${all}\nUser-agent: OtherBot\nLicense: ${group}\nDisallow: /\n`,
      all,
    ],
    "of the * group do not apply when a group names us": [
      `User-agent: *\nLicense: ${group}\n\nUser-agent: Nearcrawl\nAllow: /\n`,
      "",
    ],
    "of two groups of one agent both apply": [
      `User-agent: *\nLicense: ${all}\n\nUser-agent: *\nDisallow: /a\nLicense: ${group}\n`,
      `${all} ${group}`,
    ],
    "appended to a file after a blank line apply to all": [
      `User-agent: OtherBot\nDisallow: /\n\nSitemap: https://s.example/s.xml\nLicense: ${all}\n`,
      all,
    ],
    "between a group's agents and its rules belong to the group": [
      `User-agent: OtherBot\n\nLicense: ${group}\nDisallow: /\n`,
      "",
    ],
    "that are relative are ignored": [
      "License: /license.xml\nLicense: //s.example/l.xml\nLicense: l.xml\n",
      "",
    ],
    "that are relative replace nothing": [
      `License: ${all}\nUser-agent: *\nLicense: /group.xml\nAllow: /\n`,
      all,
    ],
  };
  for (const [what, [file, licenses]] of Object.entries(rows))
    it(what, () => {
      expect(licensesIn(file)).toBe(licenses);
    });

  it("do not end a run of User-agent lines", () => {
    const file = `User-agent: Nearcrawl\nLicense: ${group}\nUser-agent: OtherBot\nDisallow: /\n`;

    expect(robotsVerdict(parseRobots(file, "Nearcrawl"), "/").allowed).toBe(false);
  });

  it("do not restrict search", () => {
    const stated = statedIn("User-agent: *\nLicense: https://s.example/l.xml\nDisallow: /\n", "/");

    expect(stated).toEqual([
      {
        ...{ standard: "rsl", place: "robots.txt", uses: [], answer: "licensed" },
        ...{ text: "https://s.example/l.xml", line: 2 },
      },
    ]);
  });
});

describe("what is hostile", () => {
  it("of 10,000 lines a limited number is kept, and what the rest denies is denied everywhere", () => {
    const lines = Array.from({ length: 9_999 }, (_, n) => `Content-Signal: /${n} search=yes`);
    const file = ["User-agent: *", ...lines, "Content-Signal: /9999 search=no"].join("\n");

    const { uses } = parseRobots(file, "Nearcrawl");

    expect(uses.lines).toHaveLength(maxUseLines);
    expect(uses.leftOut).toEqual({ lines: 10_000 - maxUseLines, denied: ["search"] });
    expect(useAnswers(usesOfPath(uses, "/anything"))).toEqual({ search: "denied" });
  });

  it("10,000 allowing lines deny nothing", () => {
    const lines = Array.from({ length: 10_000 }, (_, n) => `Content-Signal: /${n} search=yes`);

    const { uses } = parseRobots(`User-agent: *\n${lines.join("\n")}`, "Nearcrawl");

    expect(uses.leftOut).toEqual({ lines: 10_000 - maxUseLines, denied: [] });
    expect(usesOfPath(uses, "/anything")).toEqual([]);
  });

  it("10,000 equal lines count as one", () => {
    const file = `User-agent: *\n${"Content-Signal: search=no\n".repeat(10_000)}`;

    expect(statedIn(file, "/")).toMatchObject([{ line: 2, answer: "denied" }]);
  });

  it("a line of a megabyte is cut between members", () => {
    const file = `User-agent: *\nContent-Usage: search=n, ${"a=y, ".repeat(180_000)}`;

    expect(answersIn(file, "/")).toEqual({ search: "denied" });
  });

  it("a cut path contains no half characters", () => {
    const path = `/${"\u{1f426}".repeat(200)}`;

    const [stated] = statedIn(`User-agent: *\nContent-Signal: ${path} search=no\n`, encodeURI(path));

    expect(stated).toMatchObject({ uses: ["search"], answer: "denied" });
    expect(stated!.text.length).toBeLessThanOrEqual(300);
    expect(stated!.text).not.toMatch(/\p{Surrogate}/u);
  });

  it("paths full of wildcards take limited time", () => {
    const lines = Array.from({ length: 64 }, (_, n) => `Content-Usage: /${"*a".repeat(480)}${n} search=n`);
    const startedMs = performance.now();

    expect(answersIn(`User-agent: *\n${lines.join("\n")}`, `/${"a".repeat(8000)}`)).toEqual({});
    expect(performance.now() - startedMs).toBeLessThan(2000);
  });
});
