/** A lease with known digests: texts that the coordinator has stay at the crawler, through the real fetch. */
import { createHash } from "node:crypto";
import { expect, test } from "vitest";
import { packKnownDigests } from "#protocol/known-digests";
import { html, startOrigin } from "../support/origin.ts";
import { sliceRunner } from "../support/slices.ts";

const known = "<html lang=en><title>The ferry</title><p>The ferry leaves at ten.<a href=next>Next</a>";
const digest = createHash("sha256").update(known).digest("hex");

test("the text of a known body stays, its links are those of its own URL; other pages ship whole", async () => {
  const origin = await startOrigin((request, response) => {
    if (request.url === "/robots.txt") return void response.writeHead(404).end();
    html(response, request.url?.startsWith("/moved/") ? known : "<p>Another page.<a href=/>Home</a>");
  });
  const runner = sliceRunner({ politenessFloorMs: 0 });
  const urls = ["/moved/ferry", "/other"].map((path) => origin.url + path);

  const { results } = await runner.crawl(urls, { known: packKnownDigests([digest], 5).toString("base64") });
  const whole = await runner.crawl(urls.slice(0, 1), { known: "AAAB" });
  runner.close();
  await origin.close();

  const [moved, other] = results.map(({ page }) => page);
  expect(moved).toMatchObject({ textKnown: true, digest, title: "", lexemes: "", words: expect.any(Number) });
  expect(moved?.links.map(({ url }) => url)).toEqual([`${origin.url}/moved/next`]);
  expect(other?.textKnown).toBeUndefined();
  expect(other?.lexemes).toContain("anoth");
  expect(whole.results[0]?.page).toMatchObject({ title: "The ferry" });
});
