/**
 * A site opts out through the form while it is crawled: two coordinators share a database, the form goes to the one without
 * crawlers, and the site's own log shows which requests follow.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { generateWorld } from "#ops/world/generate-world";
import { until } from "../support/until.ts";
import { type EmulatedFleet, emulatedFleet, frontPages } from "./emulated-fleet.ts";

const world = generateWorld({ seed: 5, sites: 6, crawlers: 2 });
const politenessFloorMs = 200;
const scope = { pagesPerHost: 1000, maxDepth: 100, admitNewHosts: true };
/** The acknowledgement promises a minute; here it takes less, with room for a busy machine. */
const fewSecondsMs = 3000;

let fleet: EmulatedFleet;
let formUrl: string;

beforeAll(async () => {
  fleet = await emulatedFleet({
    world,
    maxConnections: 20,
    settings: {
      delegation: { expectedCrawlers: 2, settleSeconds: 2 },
      scope: { ...scope, admitNewHosts: false },
      lease: { urlsPerHost: 500 },
      userAgent: "Nearcrawl/0.1 (+https://crawl.example.org/about-crawler)",
    },
    crawlerSettings: { contact: "abuse@partner.example", politenessFloorMs, requestsPerAddress: 8 },
  });
  ({ webUrl: formUrl } = await fleet.addCoordinator());
  await fleet.addCoordinator();
  await fleet.startAll();
}, 120_000);

afterAll(async () => await fleet?.close(), 60_000);

const pagesOf = (host: string, afterMs = 0) =>
  fleet.internet.requestLog.entries().filter((request) => request.host === host && request.atMs > afterMs);

/** Hosts of leases that are open for longer than a few seconds, the longest first. */
async function longLeases(): Promise<string[]> {
  const rows = await fleet.rows<{ host: string }>(
    "select host from lease where closed_at is null and open_urls * $1 > $2 order by open_urls desc",
    [politenessFloorMs, 2 * fewSecondsMs],
  );
  return rows.map(({ host }) => host);
}

describe("a site that opts out while it is crawled", { timeout: 120_000 }, () => {
  it("gets no request a few seconds after the acknowledgement, while others do", async () => {
    const paths = Array.from({ length: 60 }, (_, number) => `page-${number}`);
    const urls = frontPages(world.sites).flatMap((front) => paths.map((path) => `${front}${path}`));
    await fleet.admit(urls, scope);
    await until(async () => (await longLeases()).length >= 2, 60_000);
    const [leaving, staying] = (await longLeases()) as [string, string];

    const answer = await fetch(`${formUrl}/about-crawler/opt-out`, {
      method: "POST",
      headers: { accept: "application/json" },
      body: new URLSearchParams({ site: leaving }),
    });
    const acknowledgedMs = Date.now();
    await until(() => pagesOf(staying, acknowledgedMs + fewSecondsMs).length >= 3, 60_000);

    expect(answer.status).toBe(201);
    expect(pagesOf(leaving, acknowledgedMs + fewSecondsMs)).toEqual([]);
    const rows = await fleet.rows(
      "select due_at, opt_out_id is not null as marked, lease_id from frontier_host where host = $1",
      [leaving],
    );
    expect(rows).toEqual([{ due_at: null, marked: true, lease_id: null }]);
  });

  it("has seen only one User-Agent: the coordinator's, with the partner's contact", () => {
    const agents = new Set(fleet.internet.requestLog.entries().map(({ userAgent }) => userAgent));

    expect([...agents]).toEqual([
      "Nearcrawl/0.1 (+https://crawl.example.org/about-crawler) (hosted by: abuse@partner.example)",
    ]);
  });
});
