/** Hosts behind bot gates: how many by provider, how that changed within a day, and which have been for longest. */
import type { Pool } from "pg";
import { sampleTables, toldRows, wholeTable } from "../../database/cached-read.ts";
import type { GatedHosts } from "./queue-api.ts";

/** As many as are counted in a moment; hosts behind gates have an index of their own. */
const countedBytes = 8 * 2 ** 20;
const hostsShown = 10;

export async function gatedHosts(pool: Pool, now: Date): Promise<GatedHosts> {
  const { frontier_host: sample = wholeTable } = await sampleTables(pool, ["frontier_host"], countedBytes);
  const { rows: counted } = await pool.query<{ asked: number }>(
    `select count(*)::float8 as asked from frontier_host h ${sample.clause} where fetches > 0 or challenges is not null`,
  );
  const { rows: providers } = await pool.query<GatedHosts["providers"][number]>(
    `select challenge_provider as provider, count(*)::float8 as hosts,
       (count(*) filter (where challenged_since > $1::timestamptz - interval '1 day'))::float8 as "newHosts"
     from frontier_host
     where challenges is not null
     group by 1
     order by hosts desc, challenge_provider collate "C"`,
    [now],
  );
  const longest = await toldRows<GatedHosts["longest"][number]>(
    pool,
    `select host, challenge_provider as provider, challenged_since as since, challenges as tries,
       greatest(not_before, due_at) as "nextTryAt"
     from frontier_host
     where challenges is not null
     order by challenged_since, host
     limit ${hostsShown}`,
  );
  return {
    asked: Math.round(counted[0]!.asked * sample.factor),
    hosts: providers.reduce((sum, { hosts }) => sum + hosts, 0),
    providers,
    longest,
  };
}
