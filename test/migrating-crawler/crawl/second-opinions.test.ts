/** For files sampled by digest, another parser's reading is compared with ours and a difference reported. */
import { expect, it } from "vitest";
import { bodyDigest } from "#crawler/extract/extract-list";
import { isSampled } from "#crawler/extract/second-opinion";
import { atEnd } from "../../support/at-end.ts";
import { html, startOrigin } from "../support/origin.ts";
import { sliceRunner } from "../support/slices.ts";

/** Finds a number that makes the text sampled or not. */
function numbered(text: (number: number) => string, oneOf: number, isChosen: boolean): string {
  for (let number = 0; ; number++) {
    const body = text(number);
    if (isSampled(bodyDigest(Buffer.from(body)), oneOf) === isChosen) return body;
  }
}

/** robots-parser ends a group's agents at Crawl-delay; node-html-parser sees a link where browsers show text. */
const robots = (number: number) =>
  `User-agent: Nearcrawl\nCrawl-delay: 0\nUser-agent: Foo\nDisallow: /a # ${number}\n`;
const page = (number: number) => `<p>${number}<textarea><a href=/x>x</a></textarea><a href=/y>y</a>`;

async function crawled(robotsText: string, pageText: string) {
  const origin = await startOrigin((request, response) => {
    if (request.url === "/robots.txt") response.end(robotsText);
    else html(response, pageText);
  });
  const crawler = sliceRunner();
  atEnd(() => origin.close(), crawler.close);
  const { results } = await crawler.crawl([`${origin.url}/page`, `${origin.url}/a`]);
  return { url: origin.url, results };
}

it("a difference is reported once, with the file, and our own reading counts", async () => {
  const [file, body] = [numbered(robots, 1000, true), numbered(page, 10_000, true)];

  const { url, results } = await crawled(file, body);

  const [first, second] = results;
  expect(first?.robots?.difference).toEqual({
    words: `${url}/robots.txt: we forbid /a, by Disallow: /a (line 4), and robots-parser allows it`,
    file,
  });
  expect(first?.difference?.file).toBe(body);
  expect(first?.difference?.words).toContain(
    `0 links are found by our parser alone and 1 by node-html-parser alone, such as ${url}/x`,
  );
  expect(first?.page?.links.map((link) => link.url)).toEqual([`${url}/y`]);
  expect(second?.outcome.type).toBe("refused-by-robots");
  expect([second?.robots, second?.difference]).toEqual([undefined, undefined]);
});

it("nothing is reported for files that are not sampled or that both read alike", async () => {
  const unchosen = await crawled(numbered(robots, 1000, false), numbered(page, 10_000, false));
  const alike = await crawled(
    numbered((number) => `User-agent: *\nDisallow: /a # ${number}\n`, 1000, true),
    numbered((number) => `<p>${number}<a href=/y>y</a>`, 10_000, true),
  );

  for (const { results } of [unchosen, alike])
    expect(results.map((one) => [one.robots?.difference, one.difference])).toEqual([
      [undefined, undefined],
      [undefined, undefined],
    ]);
});
