/**
 * Tables web_slice, slice_range and slice_move, beside the shared tables: which slices there are, who owns which buckets, and
 * what moves. Whoever plans holds a lock on the moves, so that two operators who add slices at once are one after the other.
 */
import type { Pool, PoolClient } from "pg";
import { UsageError } from "#core/errors";
import { largestSliceNumber } from "#db/slice-numbers";
import { BucketOwners, type Buckets, bucketCount } from "../database/slices.ts";
import { inTransaction } from "../database/transaction.ts";

/** Removed ones are in no catalogue. */
export type SliceState = "preparing" | "active" | "draining" | "removing";

export interface SliceEntry {
  readonly number: number;
  /** Null: beside the shared tables. */
  readonly schema: string | null;
  /** Null: on the server of the shared tables. */
  readonly serverUrl: string | null;
  readonly state: SliceState;
  readonly addedAt: Date;
  readonly addedBy: string;
}

export type MoveStage = "planned" | "letting-go" | "copying" | "handing-over" | "clearing" | "done";

export interface SliceMove {
  /** Decimal. */
  readonly number: string;
  readonly buckets: Buckets;
  readonly from: number;
  readonly to: number;
  readonly stage: MoveStage;
  readonly askedAt: Date;
  readonly stageAt: Date;
  readonly hosts: number | null;
  readonly fault: string | null;
}

export interface OwnedRange extends Buckets {
  readonly slice: number;
}

export interface Catalogue {
  readonly slices: readonly SliceEntry[];
  /** In the order of the buckets, neighbours of one slice together. */
  readonly ranges: readonly OwnedRange[];
  readonly owners: BucketOwners;
  /** Those that are not done, in the order in which they are made. */
  readonly moves: readonly SliceMove[];
  /** Numbers of coordinators, by the slice that they work at; null: nobody does. */
  readonly leads: ReadonlyMap<number, number | null>;
}

type Reader = Pick<Pool | PoolClient, "query">;

/** Throws a RangeError where ranges leave a bucket to nobody, which no command does. */
export async function readCatalogue(client: Reader): Promise<Catalogue> {
  const { rows } = await client.query<{ catalogue: CatalogueRow }>(
    `select jsonb_build_object(
       'slices', (select jsonb_agg(to_jsonb(s) order by slice_number) from web_slice s where state <> 'removed'),
       'ranges', (select jsonb_agg(jsonb_build_array(lower(buckets), upper(buckets), slice_number) order by buckets)
                  from slice_range),
       'moves', (select jsonb_agg(to_jsonb(m) || jsonb_build_object('first', lower(buckets), 'end', upper(buckets))
                   order by move_number) from slice_move m where stage <> 'done'),
       'leads', (select jsonb_agg(jsonb_build_array(slice_number, coordinator_number)) from slice_lead)
     ) as catalogue`,
  );
  const { slices, ranges, moves, leads } = rows[0]!.catalogue;
  const owned = joined((ranges ?? []).map(([first, end, slice]) => ({ first, end, slice })));
  return {
    slices: (slices ?? []).map(sliceOf),
    ranges: owned,
    owners: new BucketOwners(owned),
    moves: (moves ?? []).map(moveOf),
    leads: new Map(leads ?? []),
  };
}

interface CatalogueRow {
  readonly slices: readonly SliceRow[] | null;
  readonly ranges: readonly [first: number, end: number, slice: number][] | null;
  readonly moves: readonly MoveRow[] | null;
  readonly leads: readonly [slice: number, coordinator: number | null][] | null;
}

interface SliceRow {
  readonly slice_number: number;
  readonly schema_name: string | null;
  readonly server_url: string | null;
  readonly state: SliceState;
  readonly added_at: string;
  readonly added_by: string;
}

interface MoveRow {
  readonly move_number: number;
  readonly first: number;
  readonly end: number;
  readonly from_slice: number;
  readonly to_slice: number;
  readonly stage: MoveStage;
  readonly asked_at: string;
  readonly stage_at: string;
  readonly hosts: number | null;
  readonly fault: string | null;
}

const sliceOf = (row: SliceRow): SliceEntry => ({
  number: row.slice_number,
  schema: row.schema_name,
  serverUrl: row.server_url,
  state: row.state,
  addedAt: new Date(row.added_at),
  addedBy: row.added_by,
});

const moveOf = (row: MoveRow): SliceMove => ({
  number: String(row.move_number),
  buckets: { first: row.first, end: row.end },
  from: row.from_slice,
  to: row.to_slice,
  stage: row.stage,
  askedAt: new Date(row.asked_at),
  stageAt: new Date(row.stage_at),
  hosts: row.hosts,
  fault: row.fault,
});

function joined(ranges: readonly OwnedRange[]): OwnedRange[] {
  const whole: OwnedRange[] = [];
  for (const range of ranges) {
    const last = whole.at(-1);
    if (last?.slice === range.slice && last.end === range.first)
      whole[whole.length - 1] = { ...last, end: range.end };
    else whole.push(range);
  }
  return whole;
}

// Slices.

/** Takes the next number, with nothing in it yet. Throws a UsageError where the schema is another slice's. */
export async function prepareSlice(
  pool: Pool,
  given: { readonly serverUrl: string | null; readonly schema: string | null; readonly by: string },
): Promise<SliceEntry> {
  return await inTransaction(pool, async (client) => {
    await lockPlans(client);
    const { slices } = await readCatalogue(client);
    const unfinished = slices.find((one) => one.state === "preparing" && one.serverUrl === given.serverUrl);
    if (unfinished !== undefined && (given.schema === null || given.schema === unfinished.schema))
      return unfinished;
    // Of those that were removed, numbers of changes are known to readers.
    const { rows: numbers } = await client.query<{ next: number }>(
      "select max(slice_number) + 1 as next from web_slice",
    );
    const number = numbers[0]!.next;
    if (number > largestSliceNumber)
      throw new UsageError(`slices have numbers up to ${largestSliceNumber}, and all are taken`);
    const { rows: names } = await client.query<{ name: string }>("select current_schema()::text as name");
    const schema = given.schema ?? `${names[0]!.name}_${number}`;
    const taken = slices.find((one) => one.serverUrl === given.serverUrl && one.schema === schema);
    if (taken !== undefined) throw new UsageError(`schema "${schema}" is slice ${taken.number} already`);
    await client.query(
      `insert into web_slice (slice_number, schema_name, server_url, state, added_by)
       values ($1, $2, $3, 'preparing', $4)`,
      [number, schema, given.serverUrl, given.by],
    );
    return (await readCatalogue(client)).slices.at(-1)!;
  });
}

export async function setSliceState(client: Reader, number: number, state: SliceState): Promise<void> {
  await client.query("update web_slice set state = $2 where slice_number = $1", [number, state]);
}

/** For whoever asks, and for alerts: why slices are not at work; the others are. */
export async function noteSliceFaults(
  pool: Pool,
  faults: readonly { readonly slice: number; readonly words: string }[],
): Promise<void> {
  await pool.query(
    `update web_slice s
     set fault = given.words
     from (select slice_number, words
           from web_slice
           left join unnest($1::int[], $2::text[]) as of (slice_number, words) using (slice_number)) given
     where s.slice_number = given.slice_number and s.fault is distinct from given.words`,
    [faults.map(({ slice }) => slice), faults.map(({ words }) => words.slice(0, 500))],
  );
}

// Moves.

export async function lockPlans(client: PoolClient): Promise<void> {
  await client.query("lock table slice_move in share row exclusive mode");
}

export interface PlannedMove {
  readonly buckets: Buckets;
  readonly from: number;
  readonly to: number;
}

/**
 * Plans what `plan` makes of the catalogue as it stands, with nobody planning beside. Throws a UsageError where it moves what
 * its slice does not own, or what moves already.
 */
export async function planMoves(
  pool: Pool,
  by: string,
  plan: (catalogue: Catalogue, client: PoolClient) => Promise<readonly PlannedMove[]>,
): Promise<readonly PlannedMove[]> {
  return await inTransaction(pool, async (client) => {
    await lockPlans(client);
    const catalogue = await readCatalogue(client);
    const moves = await plan(catalogue, client);
    for (const { buckets, from, to } of moves) {
      refuseWrongMove(catalogue, { buckets, from, to });
      await client.query(
        `insert into slice_move (buckets, from_slice, to_slice, asked_by) values (int4range($1, $2), $3, $4, $5)`,
        [buckets.first, buckets.end, from, to, by],
      );
    }
    return moves;
  });
}

function refuseWrongMove({ slices, owners, moves }: Catalogue, move: PlannedMove): void {
  const { buckets, from, to } = move;
  const words = `buckets ${buckets.first} to ${buckets.end - 1}`;
  if (!(buckets.first >= 0 && buckets.first < buckets.end && buckets.end <= bucketCount))
    throw new UsageError(`${words}: must be from 0 to ${bucketCount - 1}`);
  const target = slices.find(({ number }) => number === to);
  if (target === undefined) throw new UsageError(`there is no slice ${to}`);
  if (target.state === "preparing") throw new UsageError(`slice ${to} is not ready yet`);
  if (target.state !== "active") throw new UsageError(`slice ${to} is being drained`);
  for (let bucket = buckets.first; bucket < buckets.end; bucket++) {
    const owner = owners.ofBucket(bucket);
    if (owner !== from) throw new UsageError(`${words}: bucket ${bucket} is slice ${owner}'s, not ${from}'s`);
  }
  const other = moves.find((one) => one.buckets.first < buckets.end && buckets.first < one.buckets.end);
  if (other !== undefined)
    throw new UsageError(
      `${words}: ${other.buckets.first} to ${other.buckets.end - 1} move from slice ${other.from} to ${other.to} already`,
    );
}

/** Leaves a stage, unless somebody else has; says whether. */
export async function leaveStage(
  pool: Pool,
  move: Pick<SliceMove, "number" | "stage">,
  next: MoveStage,
  facts: { readonly hosts?: number } = {},
): Promise<boolean> {
  const { rowCount } = await pool.query(
    `update slice_move
     set stage = $3, stage_at = now(), fault = null, hosts = coalesce($4, hosts),
         finished_at = case when $3 = 'done' then now() end
     where move_number = $1 and stage = $2`,
    [move.number, move.stage, next, facts.hosts ?? null],
  );
  return rowCount === 1;
}

export async function noteFault(pool: Pool, move: Pick<SliceMove, "number">, fault: string): Promise<void> {
  await pool.query("update slice_move set fault = $2 where move_number = $1 and fault is distinct from $2", [
    move.number,
    fault.slice(0, 500),
  ]);
}

/** The buckets are the other slice's from this transaction on; says whether they were the first one's until now. */
export async function handOver(pool: Pool, move: SliceMove): Promise<boolean> {
  return await inTransaction(pool, async (client) => {
    const { rowCount } = await client.query(
      "update slice_move set stage = 'clearing', stage_at = now(), fault = null where move_number = $1 and stage = 'handing-over'",
      [move.number],
    );
    if (rowCount === 0) return false;
    const { first, end } = move.buckets;
    await client.query("lock table slice_range in share row exclusive mode");
    const { rows } = await client.query<{ first: number; end: number; slice: number }>(
      `delete from slice_range where buckets && int4range($1, $2)
       returning lower(buckets) as first, upper(buckets) as end, slice_number as slice`,
      [first, end],
    );
    const left = rows.flatMap((range) => [
      { ...range, end: Math.min(range.end, first) },
      { ...range, first: Math.max(range.first, end) },
    ]);
    const next = [...left.filter((range) => range.first < range.end), { first, end, slice: move.to }];
    await client.query(
      `insert into slice_range (buckets, slice_number)
       select int4range(first, "end"), slice from unnest($1::int[], $2::int[], $3::int[]) as given (first, "end", slice)`,
      [next.map((range) => range.first), next.map((range) => range.end), next.map(({ slice }) => slice)],
    );
    // Throws where a bucket would be without an owner.
    await readCatalogue(client);
    return true;
  });
}

/** So long a coordinator believes what it has read of leads (open-slices-store), and nobody else works at a slice that it gives up. */
export const leadsMs = 8000;

/**
 * Every slice that no running coordinator works at goes to the one of them that works at the fewest. Where one works at two more
 * than another, as after the other came back, it gives one up, which goes to the other when nobody can take it for its own any more.
 */
export async function assignLeads(pool: Pool, running: readonly number[]): Promise<void> {
  if (running.length === 0) return;
  await inTransaction(pool, async (client) => {
    await client.query("lock table slice_lead in share row exclusive mode");
    const { slices, leads } = await readCatalogue(client);
    const counts = new Map(running.map((number) => [number, 0]));
    const isRunning = (number: number | null | undefined): number is number =>
      number !== null && number !== undefined && counts.has(number);
    for (const lead of leads.values()) if (isRunning(lead)) counts.set(lead, counts.get(lead)! + 1);
    const byCount = () => [...counts].sort(([a, countA], [b, countB]) => countA - countB || a - b);
    const numbers = slices.slice(1).flatMap(({ number, state }) => (state === "removing" ? [] : [number]));
    for (const number of numbers) {
      if (isRunning(leads.get(number))) continue;
      const [[least, count]] = byCount() as [[number, number]];
      const { rowCount } = await client.query(
        `insert into slice_lead as l (slice_number, coordinator_number) values ($1, $2)
         on conflict (slice_number) do update set coordinator_number = excluded.coordinator_number, since = now()
         where l.coordinator_number is not null or l.since not between now() - interval '${leadsMs} ms' and now()`,
        [number, least],
      );
      if (rowCount === 1) counts.set(least, count + 1);
    }
    const [[, fewest], [most, mostCount]] = [byCount().at(0)!, byCount().at(-1)!];
    const given = numbers.findLast((number) => leads.get(number) === most);
    if (mostCount - fewest < 2 || given === undefined || [...leads.values()].includes(null)) return;
    await client.query(
      "update slice_lead set coordinator_number = null, since = now() where slice_number = $1",
      [given],
    );
  });
}
