/**
 * Turns the staged tables into the tree in force, inside the caller's transaction, and writes down what was
 * before: `subnet_change` alone is enough to undo a generation. Subnets that did not change keep their row,
 * id and delegation; rows are never deleted.
 */
import type { PoolClient } from "pg";

/** The steps, in an order that lets each see what it needs; $1 is the generation. */
const steps: readonly string[] = [
  // What was, before holders get new names. A removed or changed subnet remembers its holder's name as well.
  `insert into subnet_change (generation, subnet_id, change, before)
   select $1, c.subnet_id, 'removed', subnet_before
   from staged_removed r
   join subnet c using (subnet_id)
   left join holder o using (holder_id)
   cross join lateral (select jsonb_build_object(
     'country', c.country, 'registry', c.registry, 'name', c.name, 'removedIn', c.removed_in,
     'holder', case when o.holder_id is not null
       then jsonb_build_object('key', o.holder_key, 'name', o.name, 'handle', o.handle) end)) as b (subnet_before)`,

  `insert into subnet_change (generation, subnet_id, change, before, after)
   select $1, c.subnet_id, case when m.is_returned then 'returned' else 'changed' end, subnet_before, subnet_after
   from staged_match m
   join subnet c using (subnet_id)
   left join holder o using (holder_id)
   left join staged_holder h on h.holder_key = m.holder_key
   cross join lateral (select jsonb_build_object(
     'country', c.country, 'registry', c.registry, 'name', c.name, 'removedIn', c.removed_in,
     'holder', case when o.holder_id is not null
       then jsonb_build_object('key', o.holder_key, 'name', o.name, 'handle', o.handle) end)) as b (subnet_before)
   cross join lateral (select jsonb_build_object(
     'country', m.country, 'registry', m.registry, 'name', m.name,
     'holder', case when h.holder_key is not null
       then jsonb_build_object('key', h.holder_key, 'name', h.name, 'handle', h.handle) end)) as a (subnet_after)
   where m.is_changed or m.is_returned`,

  `insert into holder (holder_key, name, handle, registry)
   select holder_key, name, handle, registry from staged_holder order by holder
   on conflict (holder_key) do update set name = excluded.name, handle = excluded.handle
   where holder.name <> excluded.name or holder.handle is distinct from excluded.handle`,

  `insert into subnet
     (subnet_id, first_address, last_address, parent_id, holder_id, country, registry, name, added_in)
   overriding system value
   select m.subnet_id, m.first_address, m.last_address, p.subnet_id, h.holder_id,
     m.country, m.registry, m.name, $1
   from staged_match m
   left join staged_match p on p.ordinal = m.parent_ordinal
   left join holder h on h.holder_key = m.holder_key
   where m.is_new`,

  `select setval(pg_get_serial_sequence('subnet', 'subnet_id'), greatest(max(subnet_id), 1)) from subnet`,

  `insert into subnet_change (generation, subnet_id, change, after)
   select $1, m.subnet_id, 'added', jsonb_build_object(
     'country', m.country, 'registry', m.registry, 'name', m.name,
     'holder', case when h.holder_key is not null
       then jsonb_build_object('key', h.holder_key, 'name', h.name, 'handle', h.handle) end)
   from staged_match m
   left join staged_holder h on h.holder_key = m.holder_key
   where m.is_new`,

  `update subnet c
   set country = m.country, registry = m.registry, name = m.name, holder_id = h.holder_id, removed_in = null
   from staged_match m
   left join holder h on h.holder_key = m.holder_key
   where c.subnet_id = m.subnet_id and (m.is_changed or m.is_returned)`,

  `insert into subnet_change (generation, subnet_id, change, before, after)
   select $1, c.subnet_id, 'reparented',
     jsonb_build_object('parentId', c.parent_id), jsonb_build_object('parentId', p.subnet_id)
   from staged_match m
   join subnet c using (subnet_id)
   left join staged_match p on p.ordinal = m.parent_ordinal
   where m.is_reparented`,

  `update subnet c set parent_id = p.subnet_id
   from staged_match m
   left join staged_match p on p.ordinal = m.parent_ordinal
   where c.subnet_id = m.subnet_id and m.is_reparented`,

  `update subnet c set removed_in = $1 from staged_removed r where c.subnet_id = r.subnet_id`,
];

/** Each step is called back when it is done, for progress. */
export async function writeChanges(
  client: PoolClient,
  generation: number,
  onStep: (done: number, total: number) => void,
): Promise<void> {
  for (const [index, sql] of steps.entries()) {
    await client.query(sql, sql.includes("$1") ? [generation] : []);
    onStep(index + 1, steps.length);
  }
}
