/**
 * A process that is killed while it leases or gives back: `node … lease-process.ts lease|return SLICE-URL SLICE-SCHEMA TURNS-URL
 * TURNS-SCHEMA CRAWLER MS`, where MS is the time on its clock.
 */
import { createFrontierStore } from "#coordinator/frontier/frontier-store";
import { asCrawlerId } from "#core/ids";
import { openServerDatabase } from "#db/server-database";

const [deed, sliceUrl, sliceSchema, turnsUrl, turnsSchema, crawler, ms] = process.argv.slice(2) as string[];
const open = async (databaseUrl = "", schema = "") => await openServerDatabase({ databaseUrl, schema });
const [slice, turns] = [await open(sliceUrl, sliceSchema), await open(turnsUrl, turnsSchema)];
const frontier = createFrontierStore(slice.pool, () => {}, { turns: turns.pool });
const [crawlerId, now] = [asCrawlerId(Number(crawler)), new Date(Number(ms))];
if (deed === "return") await frontier.returnLeasesOf(crawlerId, now);
else
  await frontier.leaseHosts({
    ...{ crawlerId, hosts: 10, urlsPerHost: 1, leaseSeconds: 60, addressRestSeconds: 5, now },
  });
