-- needs: nothing
-- Who announces which addresses, and how often subnets move: the origin ASes of a routing table that was imported with the registries' files. Old
-- coordinators neither write nor read them, and keep what a generation refers to.

-- Up Migration

-- Written once and never changed: generations refer to one, so that a rollback costs nothing. Of those that none of the
-- latest refers to, the import drops the rows (rir-import/database/routing-tables.ts).
create table routing_table (
  routing_table_id integer primary key generated always as identity,
  created_at timestamptz not null default now()
);

alter table registry_generation add column routing_table_id integer references routing_table on delete set null;
create index registry_generation_routing_table on registry_generation (routing_table_id);

-- The prefixes that an AS originates, in the order of addresses. 4 bytes an IPv4 prefix: 24 bits of the address and the
-- length; 7 bytes an IPv6 prefix: 48 bits and the length (coordinator/subnets/routing-table.ts).
create table routing_origin (
  routing_table_id integer not null references routing_table on delete cascade,
  as_number bigint not null check (as_number between 1 and 4294967295),
  ipv4 bytea not null,
  ipv6 bytea not null,
  primary key (routing_table_id, as_number)
);

-- The same the other way: the address space cut into segments, each with the origin of the most specific prefix over it
-- (0: nobody announces it), some thousand to a row. 8 bytes an IPv4 segment: its first address and the AS; 12 bytes an IPv6
-- segment: the first 64 bits and the AS.
create table routing_segments (
  routing_table_id integer not null references routing_table on delete cascade,
  first_address inet not null,                -- of the row's first segment
  segments bytea not null,
  primary key (routing_table_id, first_address)
);

-- How often subnets move, by kind of network (coordinator/delegation/recalibration/ageing.ts): what the latest rounds told, written
-- anew every few hours.
create table move_rate (
  kind text not null check (kind in ('all', 'country', 'as', 'holder')),
  key text not null,                          -- 0, the country's code, "AS3333", the holder's id
  moves integer not null,
  months double precision not null,           -- observed, all subnets together
  lost_ms double precision not null,          -- by all moves together
  primary key (kind, key)
);

-- Down Migration

drop table move_rate;
drop table routing_segments;
drop table routing_origin;
drop index registry_generation_routing_table;
alter table registry_generation drop column routing_table_id;
drop table routing_table;
