-- The registry tables for ten million subnets: what an import changes is written as rows of plain columns,
-- and only what it changes.
-- Old coordinators: run on; they read the tree as before.
-- Up Migration

-- References that only imports write. One import runs at a time, holds a lock and writes both sides in one
-- transaction; checking every row of ten million again took longer than writing it.
alter table subnet
  drop constraint subnet_parent_id_fkey,
  drop constraint subnet_holder_id_fkey,
  drop constraint subnet_added_in_fkey,
  drop constraint subnet_removed_in_fkey;
-- Nobody goes down the tree in SQL.
drop index subnet_parent;

-- True for a range that overlaps another without one holding the other: the few that a look-up by address
-- has to find beside the chain of parents.
alter table subnet add column crosses boolean not null default false;
create index subnet_crossing on subnet (first_address) where crosses;

-- A subnet as it was before a generation changed, moved, returned or removed it: enough to undo the
-- generation and to tell the history of a range. Subnets that it added have no row: subnet.added_in says it.
create table subnet_before (
  generation integer not null references registry_generation,
  subnet_id integer not null,
  change text not null check (change in ('changed', 'moved', 'returned', 'removed')),
  parent_id integer,
  holder_id integer,
  country text,
  registry text not null,
  name text not null,
  crosses boolean not null,
  removed_in integer,
  primary key (generation, subnet_id)
);
create index subnet_before_subnet on subnet_before (subnet_id);

-- A holder's name and handle before a generation gave it others.
create table holder_before (
  generation integer not null references registry_generation,
  holder_id integer not null references holder,
  name text not null,
  handle text,
  primary key (generation, holder_id)
);

insert into holder_before (generation, holder_id, name, handle)
select distinct on (x.generation, h.holder_id)
  x.generation, h.holder_id, x.before->'holder'->>'name', x.before->'holder'->>'handle'
from subnet_change x
join holder h on h.holder_key = x.before->'holder'->>'key'
where x.change in ('changed', 'returned')
  and x.after->'holder'->>'key' = h.holder_key
  and (x.before->'holder'->>'name' <> x.after->'holder'->>'name'
    or x.before->'holder'->>'handle' is distinct from x.after->'holder'->>'handle');

-- What the older rows do not say is as it is now: the parent of a changed subnet that did not move, the
-- fields of a moved one that did not change.
insert into subnet_before
  (generation, subnet_id, change, parent_id, holder_id, country, registry, name, crosses, removed_in)
select x.generation, x.subnet_id,
  (array_agg(
    case x.change when 'reparented' then 'moved' else x.change end
    order by array_position(array['removed', 'returned', 'changed', 'reparented'], x.change)))[1],
  coalesce(min((x.before->>'parentId')::integer), min(c.parent_id)),
  case when bool_or(x.before ? 'country') then min(o.holder_id) else min(c.holder_id) end,
  case when bool_or(x.before ? 'country') then min(x.before->>'country') else min(c.country) end,
  coalesce(min(x.before->>'registry'), min(c.registry)),
  coalesce(min(x.before->>'name'), min(c.name)),
  false,
  min((x.before->>'removedIn')::integer)
from subnet_change x
join subnet c using (subnet_id)
left join holder o on o.holder_key = x.before->'holder'->>'key'
where x.change <> 'added'
group by x.generation, x.subnet_id;

drop table subnet_change;

-- Down Migration
