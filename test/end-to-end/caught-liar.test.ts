/**
 * One of four crawlers ships other pages than the sites have, a third of them, and states a version of its own, on the
 * emulated Internet over real sockets and a real Postgres: it is found out, gets nothing more, and what it shipped is replaced. Every page is
 * compared here, and two hosts are enough, so that it takes seconds; test/bench/results/trust.md has figures for usual
 * settings.
 */

import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import type { Pool } from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { restoreTrust } from "#coordinator/crawl/trust/distrust-writes";
import { trustReport } from "#coordinator/crawl/trust/reads";
import { fleetList } from "#coordinator/tell/fleet/fleet-reads";
import { createIncidentStore } from "#coordinator/tell/fleet/incident-store";
import { generateWorld } from "#ops/world/generate-world";
import { hashText } from "#ops/world/seeded-random";
import { until } from "../support/until.ts";
import { type EmulatedFleet, emulatedFleet, frontPages } from "./emulated-fleet.ts";

const world = generateWorld({ seed: 11, sites: 8, crawlers: 4 });
/** Whoever is nearest to the most sites. */
const liar = mostWanted();
const liarName = world.crawlers[liar]!.name;
const scope = { pagesPerHost: 5, maxDepth: 10, admitNewHosts: true };

let fleet: EmulatedFleet;
let pool: Pool;
let proxy: LyingProxy;

function mostWanted(): number {
  const nearest = world.sites.map(({ addresses: [address] }) => {
    const rtts = world.crawlers.map((_, index) => world.rttMs(index, address!) ?? Number.POSITIVE_INFINITY);
    return rtts.indexOf(Math.min(...rtts));
  });
  const counts = world.crawlers.map((_, index) => nearest.filter((one) => one === index).length);
  return counts.indexOf(Math.max(...counts));
}

/** A third of the pages: some are another page of the site, some are said to be missing. The same ones each time. */
function lie(host: string, path: string): string | null {
  const drawn = hashText(7, `${host}${path}`) % 6;
  if (drawn > 1) return null;
  return drawn === 0 && path !== "/" ? "/" : "/there-is-no-such-page";
}

beforeAll(async () => {
  fleet = await emulatedFleet({
    world,
    settings: {
      delegation: { expectedCrawlers: 4, settleSeconds: 20 },
      lease: { urlsPerHost: 5, addressRestSeconds: 0 },
      scope: { ...scope, admitNewHosts: false },
      trust: { share: 1, newcomerShare: 1, alteredShare: 0.3, threshold: 6 },
      heartbeatSeconds: 2,
    },
    crawlerSettings: { politenessFloorMs: 20 },
  });
  ({ pool } = fleet.database);
  proxy = await startLyingProxy(fleet.internet.proxyUrlOf(liar), lie);
  await fleet.addCoordinator();
  await fleet.startAll(
    (index) => (index === liar ? { proxy: proxy.url } : {}),
    (index) => (index === liar ? { softwareVersion: "9.9.9-mine" } : {}),
  );
}, 60_000);

afterAll(async () => {
  await fleet?.close();
  await proxy?.close();
}, 60_000);

describe("a crawler that alters its pages", { timeout: 320_000 }, () => {
  it("is no longer trusted", async () => {
    await fleet.admit(frontPages(world.sites), scope);

    const distrust = "select from crawler_trust where distrusted_at is not null";
    await until(async () => (await fleet.rows(distrust)).length > 0, 150_000);

    const crawlers = await fleetList(pool, new Date());
    const distrusted = crawlers.filter(({ trust }) => trust === "distrusted").map(({ name }) => name);
    expect(distrusted).toEqual([liarName]);
    expect(proxy.lies.length).toBeGreaterThan(3);
  });

  it("loses its subnets, and others fetch its indexed pages again", async () => {
    const left = `select count(*)::int as count
      from page p
      join crawler c using (crawler_id)
      join frontier_url u on u.host_hash = p.host_hash and u.url_hash = p.url_hash
      where c.name = $1`;
    const owned =
      "select count(*)::int as count from delegation join crawler using (crawler_id) where name = $1";

    await until(async () => {
      const [pages, subnets] = [left, owned].map((sql) => fleet.one<{ count: number }>(sql, [liarName]));
      return (await pages!).count === 0 && (await subnets!).count === 0;
    }, 150_000);

    const wrong = await fleet.one<{ pages: number }>(
      // What is not to be indexed comes without its words.
      "select count(*)::int as pages from page where title = 'Not found' or (title = '' and not noindex)",
    );
    expect(wrong.pages).toBe(0);
  });

  it("is shown to the operator with the contradicting pages, as one incident", async () => {
    const report = await trustReport(pool, liarName);
    const since = new Date(Date.now() - 3_600_000);
    const incidents = async () => await createIncidentStore(pool).list({ since, kind: "wrong-result" });

    await until(async () => (await incidents()).length > 0, 100_000);

    expect((await incidents()).map(({ crawler }) => crawler)).toEqual([liarName]);
    const counting = report!.evidence.filter(({ counts }) => counts);
    expect(counting.length).toBeGreaterThan(1);
    for (const { url, opinions } of report!.evidence) {
      const { hostname, pathname } = new URL(url);
      expect(lie(hostname, pathname)).not.toBeNull();
      expect(new Set(opinions.map(({ crawler }) => crawler)).size).toBeGreaterThan(2);
    }
    expect(report!.distrusted).not.toBeNull();
    expect(JSON.stringify(report!.evidence)).toMatch(/on \d+ pages of the host it agrees/);
  });

  it("is caught despite its false version, which is a separate incident", async () => {
    const since = new Date(Date.now() - 3_600_000);
    const stated = async () => await createIncidentStore(pool).list({ since, kind: "unknown-version" });

    await until(async () => (await stated()).length > 0, 100_000);

    expect((await stated()).map(({ crawler, words }) => [crawler, words])).toEqual([
      [liarName, expect.stringContaining("“9.9.9-mine”, which is no release that was offered to it")],
    ]);
    expect(
      await fleet.rows("select from double_check where words like '%versions of the software%'"),
    ).toEqual([]);
  });

  it("causes no accusation of others, and no page of a comparison is stored", async () => {
    const accused = await fleet.one<{ others: number }>(
      `select count(*)::int as others
       from check_outcome o
       join crawler c using (crawler_id)
       where o.outcome <> 'agree' and c.name <> $1`,
      [liarName],
    );
    const twice = await fleet.one<{ twice: number }>(
      `select count(*)::int as twice
       from page_fetch f
       join lease l on l.crawler_id = f.crawler_id and l.host_hash = f.host_hash and l.is_check
       where f.fetched_at between l.granted_at and l.closed_at`,
    );

    expect([accused.others, twice.twice]).toEqual([0, 0]);
  });

  it("is readmitted by the operator as a newcomer", async () => {
    const isThere = await restoreTrust(pool, liarName, new Date());

    const crawlers = await fleetList(pool, new Date());
    const restored = crawlers.find(({ name }) => name === liarName)!;
    expect([isThere, restored.draining, restored.state]).toEqual([true, null, "online"]);
    expect((await trustReport(pool, liarName))?.evidence).toEqual([]);
  });
});

// * A proxy between a crawler and the emulated Internet that requests other pages than the crawler asked for, so that another
// page, or none, comes back under the URL. To the coordinator it is the crawler that lies; the crawler needs no code for it.

interface LyingProxy {
  readonly url: string;
  /** Requests that were changed, as `host path`. */
  readonly lies: readonly string[];
  close(): Promise<void>;
}

/** The path requested in place of this one; null: the path itself. */
type Lie = (host: string, path: string) => string | null;

async function startLyingProxy(upstreamUrl: string, lie: Lie): Promise<LyingProxy> {
  const upstream = new URL(upstreamUrl);
  const lies: string[] = [];
  const sockets = new Set<Socket>();
  const server = createServer((client) => {
    const way = connect(Number(upstream.port), upstream.hostname);
    for (const socket of [client, way]) {
      sockets.add(socket);
      socket.on("error", () => [client, way].forEach((one) => void one.destroy()));
      socket.on("close", () => sockets.delete(socket));
    }
    client.on("data", (chunk: Buffer) => way.write(changed(chunk, lie, lies)));
    client.on("end", () => way.end());
    way.pipe(client);
  });
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    lies,
    close: async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise((closed) => server.close(closed));
    },
  };
}

/** A crawler writes a request in one piece; robots.txt is not changed, as an unnoticed liar would do. */
function changed(chunk: Buffer, lie: Lie, lies: string[]): Buffer {
  const text = chunk.toString("latin1");
  const path = /^GET (\/\S*) HTTP\/1\.1\r\n/.exec(text)?.[1];
  const host = /\r\nhost: (\S+)\r\n/i.exec(text)?.[1];
  if (path === undefined || host === undefined || path === "/robots.txt") return chunk;
  const other = lie(host, path);
  if (other === null) return chunk;
  lies.push(`${host} ${path}`);
  return Buffer.from(text.replace(`GET ${path} `, `GET ${other} `), "latin1");
}
