/**
 * What a range was in each generation: read backwards from what it is now, by what every generation wrote
 * down before it changed the range. Generations that were rolled back do not count.
 */
import { formatAddress } from "#core/ip/address";
import { firstAddress, type IpRange, lastAddress } from "#core/ip/range";
import { rangeText } from "#db/range-text";
import type { Database } from "#db/server-database";
import { lookUp, readAsked } from "./lookup.ts";

export interface RangeState {
  readonly holder: string | null;
  readonly handle: string | null;
  readonly country: string | null;
  readonly registry: string;
  readonly name: string;
  /** The next less specific range; null directly under the root. */
  readonly under: string | null;
}

export interface GenerationOfRange {
  readonly generation: number;
  readonly appliedAt: string;
  /** What the generation did to the range; `absent` and `unchanged`: nothing. */
  readonly event: "added" | "returned" | "changed" | "moved" | "removed" | "unchanged" | "absent";
  /** After it; null when the range was no subnet then. */
  readonly state: RangeState | null;
}

export interface RangeHistory {
  readonly asked: string;
  /** The subnet that the history is of; null when no subnet ever was or held what was asked. */
  readonly range: string | null;
  /** False: no subnet ever was exactly what was asked; this is the most specific one that holds it now. */
  readonly isExact: boolean;
  /** The newest first, at most a hundred. */
  readonly generations: readonly GenerationOfRange[];
}

const mostGenerations = 100;

/** Throws UsageError when the text is neither an address nor a range. */
export async function rangeHistory(database: Database, text: string): Promise<RangeHistory> {
  const { range, asked } = readAsked(text);
  const exact = await findSubnet(database, range);
  const subnetId = exact?.subnetId ?? (await lookUp(database, text)).chain.at(-1)?.subnetId ?? null;
  const subnet = exact ?? (subnetId === null ? null : await readSubnet(database, subnetId));
  if (subnet === null) return { asked, range: null, isExact: false, generations: [] };
  const generations = await tellBackwards(database, subnet);
  return { asked, range: rangeText(subnet.first, subnet.last), isExact: exact !== null, generations };
}

interface StateRow {
  readonly holderId: number | null;
  readonly country: string | null;
  readonly registry: string;
  readonly name: string;
  readonly parentFirst: string | null;
  readonly parentLast: string | null;
}

interface SubnetRow extends StateRow {
  readonly subnetId: number;
  readonly first: string;
  readonly last: string;
  readonly addedIn: number;
  readonly isInForce: boolean;
}

interface BeforeRow extends StateRow {
  readonly generation: number;
  readonly change: "changed" | "moved" | "returned" | "removed";
}

const stateColumns = (table: string) => `
  ${table}.holder_id as "holderId", ${table}.country, ${table}.registry, ${table}.name,
  host(p.first_address) as "parentFirst", host(p.last_address) as "parentLast"`;

const subnetSql = `
  select c.subnet_id as "subnetId", host(c.first_address) as first, host(c.last_address) as last,
    c.added_in as "addedIn", c.removed_in is null as "isInForce", ${stateColumns("c")}
  from subnet c
  left join subnet p on p.subnet_id = c.parent_id`;

/** The subnet that is exactly the range, in force or not. */
async function findSubnet(database: Database, range: IpRange): Promise<SubnetRow | null> {
  const { rows } = await database.pool.query<SubnetRow>(
    `${subnetSql} where c.first_address = $1::inet and c.last_address = $2::inet`,
    [formatAddress(firstAddress(range)), formatAddress(lastAddress(range))],
  );
  return rows[0] ?? null;
}

async function readSubnet(database: Database, subnetId: number): Promise<SubnetRow | null> {
  const { rows } = await database.pool.query<SubnetRow>(`${subnetSql} where c.subnet_id = $1`, [subnetId]);
  return rows[0] ?? null;
}

async function tellBackwards(database: Database, subnet: SubnetRow): Promise<readonly GenerationOfRange[]> {
  const generations = await readGenerations(database);
  const before = await readBefore(database, subnet.subnetId);
  const holders = await readHolders(database, [subnet, ...before.values()]);
  const told: GenerationOfRange[] = [];
  let state: StateRow | null = subnet.isInForce ? subnet : null;
  for (const { generation, appliedAt } of generations) {
    const row = before.get(generation);
    const isAdded = row === undefined && subnet.addedIn === generation;
    const event = row?.change ?? (isAdded ? "added" : state === null ? "absent" : "unchanged");
    told.push({ generation, appliedAt, event, state: state && describe(state, holders, generation) });
    if (isAdded || row?.change === "returned") state = null;
    else if (row !== undefined) state = row;
  }
  return told;
}

async function readGenerations(database: Database) {
  const { rows } = await database.pool.query<{ generation: number; applied_at: Date }>(
    `select generation, applied_at
     from registry_generation
     where state = 'applied'
     order by generation desc
     limit ${mostGenerations}`,
  );
  return rows.map(({ generation, applied_at }) => ({ generation, appliedAt: applied_at.toISOString() }));
}

async function readBefore(database: Database, subnetId: number): Promise<ReadonlyMap<number, BeforeRow>> {
  const { rows } = await database.pool.query<BeforeRow>(
    `select b.generation, b.change, ${stateColumns("b")}
     from subnet_before b
     join registry_generation g using (generation)
     left join subnet p on p.subnet_id = b.parent_id
     where b.subnet_id = $1 and g.state = 'applied'`,
    [subnetId],
  );
  return new Map(rows.map((row) => [row.generation, row]));
}

interface HolderName {
  readonly name: string;
  readonly handle: string | null;
}

/** What holders are called now, and what they were called before a generation. */
interface HolderNames {
  readonly now: ReadonlyMap<number, HolderName>;
  readonly before: readonly (HolderName & { readonly holderId: number; readonly generation: number })[];
}

async function readHolders(database: Database, states: readonly StateRow[]): Promise<HolderNames> {
  const ids = [...new Set(states.map(({ holderId }) => holderId).filter((id) => id !== null))];
  const now = await database.pool.query<HolderName & { holderId: number }>(
    `select holder_id as "holderId", name, handle from holder where holder_id = any ($1)`,
    [ids],
  );
  const before = await database.pool.query<HolderNames["before"][number]>(
    `select holder_id as "holderId", generation, b.name, b.handle
     from holder_before b
     join registry_generation g using (generation)
     where holder_id = any ($1) and g.state = 'applied'
     order by generation`,
    [ids],
  );
  return { now: new Map(now.rows.map((row) => [row.holderId, row])), before: before.rows };
}

function describe(state: StateRow, holders: HolderNames, generation: number): RangeState {
  const { holderId, country, registry, name, parentFirst, parentLast } = state;
  const later = holders.before.find((row) => row.holderId === holderId && row.generation > generation);
  const holder = later ?? (holderId === null ? undefined : holders.now.get(holderId));
  return {
    holder: holder?.name ?? null,
    handle: holder?.handle ?? null,
    country,
    registry,
    name,
    under: parentFirst && parentLast ? rangeText(parentFirst, parentLast) : null,
  };
}
