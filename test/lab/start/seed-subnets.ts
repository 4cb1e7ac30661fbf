/** Subnets as registries nest them, and delegations of every tenth or so, in a database that has none yet. */
import type { Pool } from "pg";
import type { RangeColumns } from "#coordinator/subnets/range-columns";
import { writeCopy } from "#db/copy";
import { registryLikeIpv4, registryLikeIpv6 } from "../ip-tree/registry-like-ranges.ts";

export interface Seed {
  readonly subnets: number;
  readonly delegations: number;
  readonly say: (line: string) => void;
}

const seed = 20260301;
const crawlers = 200;
const columns = [
  ...["first_address", "last_address", "holder_id", "country", "registry", "name", "added_in"],
] as const;

/** A fifth is IPv6, as in the registries. Does nothing where they are there already. */
export async function seedSubnets(pool: Pool, { subnets, delegations, say }: Seed): Promise<void> {
  const { rows } = await pool.query("select from registry_generation where state = 'applied'");
  if (rows.length > 0) return;
  say(`making ${subnets} subnets and ${delegations} delegations`);
  const client = await pool.connect();
  try {
    await client.query("begin");
    await client.query("delete from subnet");
    const indexes = await client.query<{ name: string; definition: string }>(
      `select indexrelid::regclass::text as name, pg_get_indexdef(indexrelid) as definition
       from pg_index
       where indrelid = 'subnet'::regclass and not indisprimary`,
    );
    for (const { name } of indexes.rows) await client.query(`drop index ${name}`);
    await writeCopy(client, { table: "subnet", columns }, async (into) => {
      for (const ranges of [registryLikeIpv4(0.8 * subnets, seed), registryLikeIpv6(0.2 * subnets, seed)]) {
        for (let at = 0; at < ranges.count; at += 1) {
          into.row();
          putSubnet(into, ranges, at);
          if (into.isFull) await into.flush();
        }
      }
    });
    for (const { definition } of indexes.rows) await client.query(definition);
    await client.query("insert into crawler (name) select 'c' || n from generate_series(1, $1::int) n", [
      crawlers,
    ]);
    await client.query(
      `insert into delegation (subnet_id, crawler_id, cause, measured, rtt_ms, runner_up_id, runner_up_rtt_ms,
         delegated_at)
       select subnet_id, 1 + subnet_id % $2, 'probe-round', true, subnet_id % 300, 1 + (subnet_id + 7) % $2,
         subnet_id % 290, now()
       from (select subnet_id from subnet order by hashint4(subnet_id) limit $1) picked`,
      [delegations, crawlers],
    );
    await client.query("insert into registry_generation (state, applied_at) values ('applied', now())");
    await client.query("commit");
    await client.query("analyze subnet, delegation, crawler");
  } finally {
    client.release(true);
  }
}

type Rows = Parameters<Parameters<typeof writeCopy>[2]>[0];

/** Countries and registries by turns, a million names, a hundred thousand holders. */
function putSubnet(into: Rows, { first, last, words }: RangeColumns, at: number): void {
  into.inet(first, words * at, words);
  into.inet(last, words * at, words);
  into.int32(1 + (at % 99_991));
  into.text(["DE", "US", "CY", "JP", "BR"][at % 5]!);
  into.text(["ripencc", "arin", "apnic", "lacnic", "afrinic"][at % 5]!);
  into.text(`NET-${at % 1_000_003}`);
  into.int32(1);
}
