/**
 * Compares our robots.txt matcher with robots-parser on seeded random files with plain rules only, since robots-parser
 * departs from RFC 9309 on `%7E`, `|`, `{` and groups split by Crawl-delay.
 */
import { describe, expect, it } from "vitest";
import { seededRandom } from "#core/random";
import { otherVerdicts, parseRobots, robotsVerdict } from "#crawler/fetch/robots-rules";

const segments = ["a", "b", "list", "*", "x.html", "a*b", "page$"];

function randomFile(draw: () => number): string {
  const pick = <T>(values: readonly T[]): T => values[Math.floor(draw() * values.length)]!;
  const path = () => `/${Array.from({ length: 1 + Math.floor(draw() * 3) }, () => pick(segments)).join("/")}`;
  const group = (agent: string) => [
    `User-agent: ${agent}`,
    ...Array.from({ length: 1 + Math.floor(draw() * 5) }, () => `${pick(["Allow", "Disallow"])}: ${path()}`),
    "",
  ];
  return [...group("*"), ...(draw() < 0.5 ? group("Nearcrawl") : [])].join("\n");
}

describe("robots rules", () => {
  it("agree with another implementation on 500 random files with 20 paths each", () => {
    const draw = seededRandom(9309);
    const paths = "/ /a /b /a/b /list/x.html /list/a /page /page/a /axb /aab/list".split(" ");
    const asked = paths.flatMap((path) => [path, `${path}?q=1`]);
    let refused = 0;

    for (let file = 0; file < 500; file += 1) {
      const text = randomFile(draw);
      const theirs = otherVerdicts(Buffer.from(text), "Nearcrawl", asked);
      const ours = parseRobots(text, "Nearcrawl");
      for (const [index, path] of asked.entries()) {
        const { allowed } = robotsVerdict(ours, path);
        // Under load the other parser runs out of time.
        expect(allowed, `${path} under\n${text}`).toBe(theirs[index] ?? allowed);
        if (theirs[index] === false) refused += 1;
      }
    }

    expect(refused).toBeGreaterThan(500);
  });
});
