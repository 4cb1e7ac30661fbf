/** What a run against the emulated Internet left in the database: who got which site, and each download. */
import type { Pool } from "pg";
import type { World } from "../../world/model.ts";
import type { Choices } from "./policy-comparison.ts";

/** A page as it was fetched. */
export interface FetchedPage {
  /** Position in `World.sites`. */
  readonly siteIndex: number;
  /** Bytes of the body as they came over the wire. */
  readonly wireBytes: number;
  readonly connectionReused: boolean;
  readonly totalMs: number;
}

export async function readLiveChoices(pool: Pool, world: World): Promise<Choices> {
  const { rows } = await pool.query<{ host: string; crawler: string }>(
    `select h.host, c.name as crawler
     from frontier_host h
     join delegation d on d.subnet_id = h.subnet_id
     join crawler c on c.crawler_id = d.crawler_id`,
  );
  const crawlers = new Map(world.crawlers.map((crawler, index) => [crawler.name, index]));
  const chosen = new Map(rows.map((row) => [row.host, crawlers.get(row.crawler) ?? null]));
  const probes = await pool.query<{ probes: number }>(
    "select count(*)::int as probes from probe where how = 'probe'",
  );
  return {
    crawlerOfSite: world.sites.map((site) => chosen.get(site.host) ?? null),
    probes: probes.rows[0]!.probes,
  };
}

export async function readFetchedPages(pool: Pool, world: World): Promise<FetchedPage[]> {
  const sites = new Map(world.sites.map((site, index) => [site.host, index]));
  const { rows } = await pool.query<{ host: string; wire_bytes: number; reused: boolean; total_ms: number }>(
    `select h.host, f.wire_bytes, f.connect_ms is null as reused, f.total_ms
     from page_fetch f
     join frontier_host h on h.host_hash = f.host_hash
     where f.outcome = 'fetched'`,
  );
  return rows.flatMap((row) => {
    const siteIndex = sites.get(row.host);
    if (siteIndex === undefined) return [];
    return [{ siteIndex, wireBytes: row.wire_bytes, connectionReused: row.reused, totalMs: row.total_ms }];
  });
}
