/**
 * A host behind a bot gate, and a page drawn by scripts, in who, queue, sites, site, page, overview and the commands.
 */

import type { FastifyInstance } from "fastify";
import { afterAll, beforeAll, expect, test } from "vitest";
import { defaultRecrawlSettings, isGone, nextFetchAt } from "#coordinator/crawl/recrawl/visit-findings";
import { describeApi } from "#coordinator/open-api";
import { Counters } from "#coordinator/tell/overview/metrics";
import { keepSites } from "#coordinator/tell/sites/sites-upkeep-store";
import type { FetchOutcome } from "#protocol/result";
import { commandNamed, inProcess } from "../support/command-in-process.ts";
import { everyPart } from "../support/every-part.ts";
import { forThisFile } from "../support/for-this-file.ts";
import { faultsOf, type JsonSchema } from "../support/schema-check.ts";
import { arrivedResult, newWorld, spoolId } from "../support/store-world.ts";
import { webServer } from "../support/web-server.ts";

const world = await forThisFile(newWorld());
let app: FastifyInstance;
/** Pages show the present: the challenge was met a minute ago. */
const at = new Date(Date.now() - 60_000);

const gated = "http://gated.example/";
const drawn = "http://drawn.example/app";
const challenged: FetchOutcome = {
  ...{ type: "failed", blame: "target", code: "challenged", reason: "" },
  challenge: { provider: "cloudflare", of: "page", status: 403 },
};

beforeAll(async () => {
  const crawlerId = await world.delegatedHost("north", gated, drawn);
  await world.rows(`update frontier_url set next_fetch_at = '${at.toISOString()}'`);
  await world.rows(`update frontier_host set due_at = '${at.toISOString()}'`);
  const leases = await world.lease(crawlerId, at);
  const leaseOf = (url: string) => leases.find(({ urls }) => urls.some((one) => one.url === url))!.leaseId;
  const attempt = { now: at, outcome: challenged, failures: 0 };
  const again = () => ({
    at: nextFetchAt(attempt, defaultRecrawlSettings),
    isGone: isGone(attempt, defaultRecrawlSettings),
  });
  const result = { fetchedAt: at.toISOString(), hostDelayMs: 0 };
  await world.take(
    crawlerId,
    [
      arrivedResult({ sequence: 1, leaseId: leaseOf(gated), url: gated, outcome: challenged, again, result }),
      arrivedResult({
        ...{ sequence: 2, leaseId: leaseOf(drawn), url: drawn, result },
        page: { title: "App", words: 0, text: "", needsScripts: true },
      }),
    ],
    at,
  );
  while (!(await keepSites(world.pool, new Date())).rests);
  app = webServer(world.database, { parts: await everyPart(world.database) });
  await app.ready();
});
afterAll(async () => await app?.close());

const command = async (name: string, ...args: string[]) => {
  const { url, schema } = world.database;
  return (await inProcess(commandNamed(name), [...args, "--database-url", url, "--schema", schema])).out;
};
const get = async (url: string) => await app.inject({ url });
const { schemas } = describeApi().components as { schemas: Record<string, JsonSchema> };

test("who names the gate, its beginning and the next try, as text and page", async () => {
  const words =
    /It is behind a bot gate \(Cloudflare\), which has answered in place of its pages since .*; the next try is in 24 h/;

  expect(await command("who", "gated.example")).toMatch(words);
  expect(await command("who", "gated.example")).toMatch(/Bot gate +Cloudflare \(since .*, 1 try\)/);
  expect((await get("/who?q=gated.example")).body).toContain("It is behind a bot gate (Cloudflare)");
  const answer = (await get("/api/who?q=gated.example")).json();
  expect(faultsOf(answer, schemas.WhoAnswer!, schemas)).toEqual([]);
  expect(await command("who", gated)).toContain("a bot gate (Cloudflare) stands before the page");
});

test("the queue lists it with those that wait, by provider", async () => {
  const answer = (await get("/api/fleet/queue")).json();

  expect(faultsOf(answer, schemas.QueueView!, schemas)).toEqual([]);
  expect(answer.gated).toMatchObject({
    ...{ asked: 2, hosts: 1 },
    providers: [{ provider: "cloudflare", hosts: 1, newHosts: 1 }],
    longest: [{ host: "gated.example", tries: 1 }],
  });
  expect(answer.hosts.map(({ host }: { host: string }) => host)).not.toContain("gated.example");
  expect(await command("queue")).toMatch(
    /1 host rests, since a gate answers in its place: Cloudflare 1\.[\s\S]*gated\.example +Cloudflare/,
  );
});

test("the list of sites, the site and the overview show it", async () => {
  const { sites } = (await get("/api/sites?state=blocked")).json();
  const site = (await get("/api/sites/gated.example")).json();
  const overview = (await get("/api/overview")).json();

  expect(sites).toMatchObject([
    { host: "gated.example", state: "blocked", reason: "it is behind a bot gate (Cloudflare), and rests" },
  ]);
  expect(site.site).toMatchObject({ state: "blocked", words: expect.stringContaining("Cloudflare") });
  expect(await command("site", "gated.example")).toContain("a bot gate (Cloudflare)");
  expect(overview.totals.hostsGated).toBe(1);
  expect((await get("/")).body).toContain("1 host behind bot gates");
});

test("a page drawn by scripts is kept, and page and site call it empty without them", async () => {
  const page = (await get(`/api/pages?url=${encodeURIComponent(drawn)}`)).json();
  const { overview } = (await get("/api/sites/drawn.example")).json();

  expect(page.page).toMatchObject({ title: "App", needsScripts: true });
  expect(await command("page", drawn)).toMatch(/0 words +empty without scripts/);
  expect(overview.needsScripts).toEqual({ pages: 1, more: false, urls: [drawn] });
  expect((await get("/sites/drawn.example")).body).toContain("empty without scripts");
});

test("answers of gates are counted by provider, unknown ones too", async () => {
  const counters = new Counters();
  const outcomes = ["cloudflare", "made-up"].map((provider) => ({
    ...challenged,
    challenge: { provider, of: "page" as const, status: 403 },
  }));

  counters.results(
    {
      ...{ crawlerId: 1 as never, spoolId },
      results: outcomes.map((outcome, index) => ({
        ...{ sequence: index, leaseId: "1" as never, wireBytes: 1 },
        result: arrivedResult({ sequence: index, leaseId: "1", url: gated, outcome }).result,
      })),
    },
    { stored: 2, duplicates: 0, withoutLease: 0, newUrls: 0 },
  );

  const told = await counters.metrics.registry.metrics();
  expect(told).toContain('nearcrawl_challenges_total{provider="cloudflare"} 1');
  expect(told).toContain('nearcrawl_challenges_total{provider="unknown"} 1');
});
