/**
 * What an import would change, read from the staged tables: counts that are exact, samples that are bounded.
 */
import type { PoolClient } from "pg";
import { rangeText } from "./range-text.ts";

export interface ChangeCounts {
  readonly added: number;
  /** Was there once, was removed, and is back: keeps its old id and delegation. */
  readonly returned: number;
  /** Holder, country, registry or name is another. */
  readonly changed: number;
  /** Only the less specific subnet above it is another. */
  readonly reparented: number;
  readonly removed: number;
  readonly unchanged: number;
}

export interface SubnetWords {
  readonly holder: string | null;
  readonly country: string | null;
  readonly registry: string;
  readonly name: string;
}

export interface ChangeSample {
  readonly range: string;
  readonly before: SubnetWords | null;
  readonly after: SubnetWords | null;
}

export interface ChangeSamples {
  readonly added: readonly ChangeSample[];
  readonly returned: readonly ChangeSample[];
  readonly changed: readonly ChangeSample[];
  readonly removed: readonly ChangeSample[];
}

export async function countChanges(client: PoolClient): Promise<ChangeCounts> {
  const { rows } = await client.query<Record<keyof ChangeCounts, string>>(`
    select
      count(*) filter (where is_new) as added,
      count(*) filter (where is_returned) as returned,
      count(*) filter (where is_changed and not is_returned) as changed,
      count(*) filter (where is_reparented and not is_returned and not is_changed) as reparented,
      count(*) filter (where not is_new and not is_returned and not is_changed and not is_reparented) as unchanged,
      (select count(*) from staged_removed) as removed
    from staged_match`);
  const counts = rows[0]!;
  return {
    added: Number(counts.added),
    returned: Number(counts.returned),
    changed: Number(counts.changed),
    reparented: Number(counts.reparented),
    removed: Number(counts.removed),
    unchanged: Number(counts.unchanged),
  };
}

/** The first changes of each kind, in the order of addresses, at most `limit` each. */
export async function sampleChanges(client: PoolClient, limit: number): Promise<ChangeSamples> {
  return {
    added: await sample(client, matchSample("m.is_new"), limit),
    returned: await sample(client, matchSample("m.is_returned"), limit),
    changed: await sample(client, matchSample("m.is_changed and not m.is_returned"), limit),
    removed: await sample(client, removedSample, limit),
  };
}

const matchSample = (condition: string) => `
  select host(m.first_address) as first, host(m.last_address) as last,
    c.subnet_id is not null as had_before, o.name as "holderBefore", c.country as "countryBefore",
    c.registry as "registryBefore", c.name as "nameBefore",
    true as has_after, h.name as "holderAfter", m.country as "countryAfter",
    m.registry as "registryAfter", m.name as "nameAfter"
  from staged_match m
  left join subnet c on c.subnet_id = m.subnet_id
  left join holder o on o.holder_id = c.holder_id
  left join staged_holder h on h.holder_key = m.holder_key
  where ${condition}
  order by m.first_address, m.last_address desc
  limit $1`;

const removedSample = `
  select host(r.first_address) as first, host(r.last_address) as last,
    true as had_before, o.name as "holderBefore", c.country as "countryBefore",
    c.registry as "registryBefore", c.name as "nameBefore", false as has_after
  from staged_removed r
  join subnet c using (subnet_id)
  left join holder o on o.holder_id = c.holder_id
  order by r.first_address, r.last_address desc
  limit $1`;

interface SampleRow {
  readonly first: string;
  readonly last: string;
  readonly had_before: boolean;
  readonly has_after: boolean;
  readonly [column: string]: string | boolean | null;
}

async function sample(client: PoolClient, sql: string, limit: number): Promise<readonly ChangeSample[]> {
  const { rows } = await client.query<SampleRow>(sql, [limit]);
  return rows.map((row) => ({
    range: rangeText(row.first, row.last),
    before: row.had_before ? wordsOf(row, "Before") : null,
    after: row.has_after ? wordsOf(row, "After") : null,
  }));
}

function wordsOf(row: SampleRow, when: "Before" | "After"): SubnetWords {
  const text = (column: string) => (row[`${column}${when}`] ?? null) as string | null;
  return {
    holder: text("holder"),
    country: text("country"),
    registry: text("registry") ?? "",
    name: text("name") ?? "",
  };
}
