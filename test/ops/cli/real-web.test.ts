/** When a crawl of the public web is refused, and what happens to URLs that cannot be crawled: with real processes. */
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { Database } from "#db/server-database";
import { upCommand } from "#ops/cli/commands/up";
import { nearcrawl } from "../../support/built-command.ts";
import { inProcess } from "../../support/command-in-process.ts";
import { testDatabase } from "../../support/database.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

let database: Database;
beforeAll(async () => {
  database = await testDatabase();
}, 60_000);
afterAll(async () => await database.close());

/** In a home of its own, on the test's server. */
const run = async (...args: string[]) =>
  await nearcrawl([...args, "--home", temporaryFolder("nearcrawl-real-"), "--database-url", database.url]);

/** Refused before anything is started. */
const refused = async (...args: string[]) =>
  await inProcess(upCommand(), [...args, "--home", temporaryFolder("nearcrawl-real-")]);

/** The settings of the last coordinator. */
const crawledBy = async () =>
  (
    await database.pool.query(
      "select settings #>> '{recrawl,strategy}' as strategy, settings #>> '{frontier,order}' as \"order\" from nearcrawl.policy_file",
    )
  ).rows;

const real = ["--no-world", "--port", "0", "--exit", "--json"];
const up = ["up", ...real];
const contact = ["--contact", "me@example.org"];

it.each([
  ["up", [...up, "--url", "https://example.org/a?b=c d"]],
  ["coordinator", ["coordinator", "--listen", "127.0.0.1:0"]],
])(
  "%s crawls no public web without a contact that can be reached, and says what to type",
  async (_, args) => {
    const { code, err } = await run(...args);

    expect([code, err.trimEnd().split("\n").length]).toEqual([2, 1]);
    expect(err).toMatch(
      /^nearcrawl: the User-Agent "Nearcrawl\/0\.2 \(\+http:\/\/127\.0\.0\.1:\d+\/about-crawler\)"/,
    );
    expect(err).toMatch(/ by nearcrawl (up|coordinator) .* --contact you@example\.org\n$/);
  },
);

it("an unreachable contact is refused", async () => {
  const url = ["--url", "https://example.org/"];
  const { code, err } = await refused(...real, ...url, "--contact", "http://127.0.0.1/me");

  expect([code, err]).toEqual([2, expect.stringContaining("--contact http://127.0.0.1/me: must be")]);
});

it("starts nothing if no URL can be crawled, and names each with its reason", async () => {
  const urls = ["--url", "ftp://x/", "http://10.1.2.3/a", "http://[::1]/"];
  const { code, err } = await refused(...real, ...contact, ...urls);

  expect([code, err.trimEnd().split("\n")]).toEqual([
    2,
    [
      "nearcrawl: not crawled: ftp://x/: only http and https are crawled",
      expect.stringMatching(
        /^not crawled: http:\/\/10\.1\.2\.3\/a: 10\.1\.2\.3 is a special-purpose address/,
      ),
      expect.stringMatching(/^not crawled: http:\/\/\[::1\]\/: ::1 is a special-purpose address/),
      "addresses of your own network are crawled with --allow RANGE, such as --allow 10.0.0.0/8",
    ],
  ]);
});

it("crawls one's own network where it is allowed, and no other", { timeout: 120_000 }, async () => {
  const site = createServer((_, response) => {
    response.setHeader("content-type", "text/html").end("<title>Intranet</title><p>Our own pages.</p>");
  }).listen(0, "127.0.0.1");
  await once(site, "listening");
  const url = `http://127.0.0.1:${(site.address() as AddressInfo).port}/`;

  const crawled = await run(...up, ...contact, "--allow", "127.0.0.0/8", "--url", url, "http://10.1.2.3/");
  const wrong = await refused(...real, ...contact, "--allow", "mine", "--url", url);
  site.close();

  expect(JSON.parse(crawled.out).pages).toBe(1);
  expect(await crawledBy()).toEqual([{ strategy: "optimal", order: "back-links" }]);
  expect([crawled.code, crawled.err]).toEqual([2, expect.stringContaining("not crawled: http://10.1.2.3/")]);
  expect([wrong.code, wrong.err]).toEqual([2, expect.stringContaining("--allow mine: must be a range")]);
});

it("a crawl that began with other defaults keeps them; what DNS says cannot be crawled is named, and fails", {
  timeout: 90_000,
}, async () => {
  const before = { recrawl: { strategy: "fixed" }, frontier: { order: "breadth-first" } };
  await database.pool.query("update nearcrawl.policy_file set settings = settings || $1", [
    JSON.stringify(before),
  ]);

  const { code, out, err } = await run(...up, ...contact, "--url", "http://localhost/");

  expect([code, err], err).toEqual([
    1,
    expect.stringMatching(/^nearcrawl: not crawled: http:\/\/localhost\/: .+$/m),
  ]);
  expect(JSON.parse(out)).toMatchObject({ finished: true, refused: [{ url: "http://localhost/" }] });
  expect(await crawledBy()).toEqual([{ strategy: "fixed", order: "breadth-first" }]);
});

it("crawls the others, and ends with the exit code of wrong input", { timeout: 90_000 }, async () => {
  const { code, out } = await run(...up, ...contact, "--url", "http://localhost/", "ftp://x/");
  const { rows } = await database.pool.query(
    "select reason from nearcrawl.rejected_url where url = 'ftp://x/'",
  );

  expect(code).toBe(2);
  expect(JSON.parse(out).refused.map(({ url }: { url: string }) => url)).toEqual([
    "ftp://x/",
    "http://localhost/",
  ]);
  expect(rows).toEqual([{ reason: "only http and https are crawled" }]);
});
