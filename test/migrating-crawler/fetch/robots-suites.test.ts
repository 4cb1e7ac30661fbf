/** The public robots.txt suites and 1,894 real files, where the shared data folder is present. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { agentToken, parseRobots, robotsVerdict } from "#crawler/fetch/robots-rules";
import { sharedData } from "../../support/shared-data.ts";

interface Row {
  readonly name: string;
  readonly robots?: string;
  readonly robots_b64?: string;
  readonly robotsUrl?: string;
  readonly agent: string;
  readonly url: string;
  readonly allowed: boolean;
  readonly googleSpecific?: boolean;
  readonly class?: string;
}
interface RealFile {
  readonly host: string;
  readonly file: string;
  readonly cases: readonly {
    readonly agent: string;
    readonly path: string;
    readonly allowed: boolean;
    readonly consensus: boolean;
  }[];
}

const suites = ["google-robots_test", "google-spec-ctc", "protego", "samclarke-robots-parser"];
const folder = sharedData("suites/robots");

describe.skipIf(folder === null)("the public robots.txt suites", () => {
  for (const suite of suites) {
    it(`${suite}: every row that RFC 9309 or all implementations agree on passes`, () => {
      const rows = JSON.parse(readFileSync(join(folder!, `${suite}.json`), "utf8")) as Row[];
      const agreed = rows.filter(isAgreed);

      const wrong = agreed.filter((row) => answer(row) !== row.allowed);

      expect(agreed.length).toBeGreaterThan(50);
      expect(wrong).toEqual([]);
    });
  }

  it("the real files: statements about uses are found and change no verdict", () => {
    const files = JSON.parse(readFileSync(join(folder!, "real-dev.json"), "utf8")) as RealFile[];
    const managed = Buffer.from("\n\nUser-agent: *\nContent-Signal: search=yes,ai-train=no,use=reference\n");
    const lines = { "content-signal": 0, "content-usage": 0, license: 0 };
    const wrong: string[] = [];

    for (const { file, cases } of files) {
      const body = readFileSync(join(folder!, file));
      const rules = parseRobots(body, "Nearcrawl");
      for (const { field } of rules.uses.lines) lines[field]++;
      const withSignal = parseRobots(Buffer.concat([body, managed]), "Nearcrawl");
      const isSame = cases.every(
        ({ path }) => robotsVerdict(withSignal, path).allowed === robotsVerdict(rules, path).allowed,
      );
      if (!isSame || withSignal.uses.lines.length !== rules.uses.lines.length + 1) wrong.push(file);
    }
    const all = files.map(({ file }) => readFileSync(join(folder!, file), "latin1")).join("\n");
    const found = (name: string) => all.match(new RegExp(`^[ \\t]*${name}[ \\t]*:`, "gim"))?.length ?? 0;

    console.log(`of ${files.length} real robots.txt files, lines about uses: ${JSON.stringify(lines)}`);
    expect(wrong).toEqual([]);
    expect(lines).toEqual({
      "content-signal": found("content-signal"),
      "content-usage": found("content-usage"),
      license: found("license"),
    });
  });

  it("the real files: every consensus row passes", () => {
    const files = JSON.parse(readFileSync(join(folder!, "real-dev.json"), "utf8")) as RealFile[];
    let rows = 0;

    const wrong = files.flatMap((file) => {
      const body = readFileSync(join(folder!, file.file));
      const rulesOf = remembering((agent: string) => parseRobots(body, agentToken(agent)));
      const agreed = file.cases.filter((row) => row.consensus);
      rows += agreed.length;
      return agreed
        .filter((row) => robotsVerdict(rulesOf(row.agent), row.path).allowed !== row.allowed)
        .map((row) => ({ ...row, file: file.file }));
    });

    expect(rows).toBeGreaterThan(10_000);
    expect(wrong).toEqual([]);
  });
});

function isAgreed(row: Row): boolean {
  return row.class === "consensus" || row.class === "rfc9309" || row.googleSpecific === false;
}

function answer(row: Row): boolean {
  const body = row.robots_b64 ? Buffer.from(row.robots_b64, "base64") : (row.robots ?? "");
  return robotsVerdict(parseRobots(body, agentToken(row.agent)), pathAsWritten(row.url)).allowed;
}

/** A URL parser would percent-encode what some rows test unencoded. */
function pathAsWritten(url: string): string {
  const path = url.replace(/^[a-z]+:\/\/[^/?#]*/i, "").replace(/#.*$/, "");
  return path.startsWith("/") ? path : `/${path}`;
}

function remembering<Value>(make: (key: string) => Value): (key: string) => Value {
  const made = new Map<string, Value>();
  return (key) => {
    if (!made.has(key)) made.set(key, make(key));
    return made.get(key) as Value;
  };
}
