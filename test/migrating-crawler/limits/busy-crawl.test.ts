/** A real crawl with more work than its processor share allows, measured by the kernel. */
import { expect, it } from "vitest";
import { html, startOrigin } from "../support/origin.ts";
import { sliceRunner } from "../support/slices.ts";

const words = Array.from({ length: 4000 }, (_, index) => `ship${index} sails northwards`).join(" ");

/**
 * Only checks an upper bound, since a busy machine gives the crawl less. The sites run in this process too, so the
 * crawl pays for their work.
 */
it("stays within five points of its share", { timeout: 60_000 }, async () => {
  const origin = await startOrigin((request, response) => {
    if (request.url === "/robots.txt") return void response.writeHead(404).end();
    html(response, `<title>${request.url}</title><p>${words}`);
  });
  const cpuShare = 0.25;
  const runner = sliceRunner({ limits: { cpuShare }, requestsPerAddress: 64 });
  const pages = (host: string) =>
    Array.from({ length: 7 }, (_, page) => `http://${host}.localhost:${origin.port}/${page}`);
  const began = { cpu: process.cpuUsage(), ms: performance.now() };

  const crawled = await Promise.all(["a", "b", "c"].map((host) => runner.crawl(pages(host))));

  const { user, system } = process.cpuUsage(began.cpu);
  const share = (user + system) / 1000 / (performance.now() - began.ms);
  expect(crawled.map(({ results }) => results.length)).toEqual([7, 7, 7]);
  expect(share).toBeLessThan(cpuShare + 0.05);
});
