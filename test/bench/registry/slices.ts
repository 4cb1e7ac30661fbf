/** Leases of twenty hosts with twenty URLs each, asked for by all crawlers in turn. */
import type { Pool } from "pg";
import type { FrontierStore } from "#coordinator/frontier/frontier";
import { asCrawlerId } from "#core/ids";
import { type Rates, ratesOf, roundOf } from "./measured-rounds.ts";
import { crawlers } from "./seed-frontier.ts";

const asksPerRound = 36;
const rounds = 5;

export interface SliceRates {
  readonly slices: Rates;
  readonly urlsPerSlice: number;
}

export async function measureSlices(
  pool: Pool,
  frontier: FrontierStore,
  server: number,
): Promise<SliceRates> {
  await pool.query("checkpoint");
  const measured = [];
  let urls = 0;
  // The first round fills caches and makes plans.
  for (let round = 0; round <= rounds; round++) {
    urls = 0;
    const jobs = Array.from({ length: asksPerRound }, (_, ask) => async () => {
      const leases = await frontier.leaseHosts({
        crawlerId: asCrawlerId(1 + (ask % crawlers)),
        hosts: 20,
        urlsPerHost: 20,
        leaseSeconds: 600,
        now: new Date(),
      });
      if (leases.length === 0) throw new Error("nothing was due: the frontier is too small for this");
      urls += leases.reduce((sum, lease) => sum + lease.urls.length, 0);
      return leases.length;
    });
    measured.push(await roundOf(jobs, server));
  }
  await nothingTwice(pool);
  return { slices: ratesOf(measured.slice(1)), urlsPerSlice: urls / measured.at(-1)!.count };
}

/** What the leases say that they hold, and what is held, are the same URLs. */
async function nothingTwice(pool: Pool): Promise<void> {
  const { rows } = await pool.query<{ said: number; held: number }>(
    `select (select sum(url_count) from lease where closed_at is null)::int as said,
       (select count(distinct (u.host_hash, u.url_hash))
        from lease l
        cross join unnest(l.open_url_hashes) as one (url_hash)
        join frontier_url u on u.host_hash = l.host_hash and u.url_hash = one.url_hash
        where l.closed_at is null)::int as held`,
  );
  if (rows[0]!.said !== rows[0]!.held)
    throw new Error(`leases of ${rows[0]!.said} URLs hold ${rows[0]!.held}`);
}
