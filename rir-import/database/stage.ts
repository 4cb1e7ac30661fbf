/**
 * Puts the wanted state beside the one in force: COPY into temporary tables, then one join that says of
 * every subnet whether it is added, returned, changed, reparented or removed. Plan reads these tables,
 * apply writes from them; both inside one transaction, at whose end they vanish.
 *
 * `staged_match` is the heart: one row per wanted subnet, with the id that it has or, when it is new, will
 * have. Ids are counted on from the largest: only imports add subnets, and they hold the import lock.
 */
import { once } from "node:events";
import { finished } from "node:stream/promises";
import type { PoolClient } from "pg";
import { from as copyFrom } from "pg-copy-streams";
import { formatAddress } from "#core/ip/address";
import { firstAddress, lastAddress } from "#core/ip/range";
import { type RegistryState, type WantedSubnet, wantedSubnets } from "../tree/registry-state.ts";

/** Fills staged_subnet, staged_holder, staged_match and staged_removed. `onRows` counts subnets sent. */
export async function stageState(
  client: PoolClient,
  state: RegistryState,
  onRows: (rows: number) => void,
): Promise<void> {
  await client.query(createTables);
  await copyRows(client, "staged_holder", holderLines(state));
  await copyRows(client, "staged_subnet", subnetLines(state, onRows));
  await client.query("analyze staged_holder");
  await client.query("analyze staged_subnet");
  await client.query(matchWithCurrent);
  await client.query("create unique index on staged_match (ordinal)");
  await client.query("analyze staged_match");
  await client.query(markReparented);
  await client.query(findRemoved);
}

const createTables = `
  create temporary table staged_holder (
    holder integer not null,
    holder_key text collate "C" not null,
    name text not null,
    handle text,
    registry text
  ) on commit drop;
  create temporary table staged_subnet (
    ordinal integer not null,
    first_address inet not null,
    last_address inet not null,
    parent_ordinal integer,
    holder integer,
    country text,
    registry text not null,
    name text not null
  ) on commit drop`;

/**
 * `is_changed` also when only the holder's own name or handle is another: the change then carries what it
 * was, and rollback can restore it.
 */
const matchWithCurrent = `
  create temporary table staged_match on commit drop as
  select s.ordinal, s.first_address, s.last_address, s.parent_ordinal, s.country, s.registry, s.name,
    h.holder_key,
    coalesce(c.subnet_id, largest.subnet_id
      + count(*) filter (where c.subnet_id is null) over (order by s.ordinal rows unbounded preceding)
    )::integer as subnet_id,
    c.subnet_id is null as is_new,
    c.removed_in is not null as is_returned,
    c.subnet_id is not null and (
      c.country is distinct from s.country
      or c.registry <> s.registry
      or c.name <> s.name
      or o.holder_key is distinct from h.holder_key
      or o.name is distinct from h.name
      or o.handle is distinct from h.handle
    ) as is_changed,
    false as is_reparented
  from staged_subnet s
  cross join (select coalesce(max(subnet_id), 0) as subnet_id from subnet) largest
  left join staged_holder h on h.holder = s.holder
  left join subnet c on c.first_address = s.first_address and c.last_address = s.last_address
  left join holder o on o.holder_id = c.holder_id`;

const markReparented = `
  update staged_match m set is_reparented = true
  from staged_match child
    left join staged_match parent on parent.ordinal = child.parent_ordinal
    join subnet c on c.subnet_id = child.subnet_id
  where m.ordinal = child.ordinal and c.parent_id is distinct from parent.subnet_id`;

const findRemoved = `
  create temporary table staged_removed on commit drop as
  select c.subnet_id, c.first_address, c.last_address
  from subnet c
  where c.removed_in is null
    and not exists (
      select from staged_subnet s
      where s.first_address = c.first_address and s.last_address = c.last_address)`;

async function copyRows(client: PoolClient, table: string, lines: Iterable<string>): Promise<void> {
  const stream = client.query(copyFrom(`copy ${table} from stdin`));
  const done = finished(stream);
  done.catch(() => {});
  let buffer = "";
  for (const line of lines) {
    buffer += line;
    if (buffer.length < 65_536) continue;
    const hasRoom = stream.write(buffer);
    buffer = "";
    if (!hasRoom) await Promise.race([once(stream, "drain"), done]);
  }
  stream.end(buffer);
  await done;
}

function* holderLines(state: RegistryState): Generator<string> {
  for (const [index, holder] of state.holders.entries()) {
    yield copyLine([String(index), holder.key, holder.name, holder.handle, holder.registry]);
  }
}

function* subnetLines(state: RegistryState, onRows: (rows: number) => void): Generator<string> {
  let rows = 0;
  for (const subnet of wantedSubnets(state)) {
    yield subnetLine(subnet);
    rows++;
    if (rows % 10_000 === 0) onRows(rows);
  }
  onRows(rows);
}

function subnetLine(subnet: WantedSubnet): string {
  return copyLine([
    String(subnet.ordinal),
    formatAddress(firstAddress(subnet.range)),
    formatAddress(lastAddress(subnet.range)),
    subnet.parentOrdinal === null ? null : String(subnet.parentOrdinal),
    subnet.holder === null ? null : String(subnet.holder),
    subnet.country,
    subnet.registry,
    subnet.name,
  ]);
}

const escapes: Readonly<Record<string, string>> = { "\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r" };

/** One row in COPY's text format; null as \N. */
function copyLine(fields: readonly (string | null)[]): string {
  const texts = fields.map((field) =>
    field === null ? "\\N" : field.replace(/[\\\t\n\r]/g, (sign) => escapes[sign] ?? sign),
  );
  return `${texts.join("\t")}\n`;
}
