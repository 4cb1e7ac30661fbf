-- Routing tables go, with what was read from them: as holders of subnets without one, origin ASes saved 2 % of the probes and cost up to a
-- point of accuracy (ops/decisions/0045-what-went.md). Nobody entered them: they came with `rir fetch` from public collectors. Older
-- coordinators read them whenever the registry changes.
-- needs: all coordinators stopped

-- Up Migration

do $$
begin
  if exists (select from routing_table) then
    raise notice 'dropping % imported routing tables (tables routing_table, routing_origin, routing_segments); who announces which prefix is public (RIPE RIS)',
      (select count(*) from routing_table);
  end if;
end $$;

drop table routing_segments;
drop table routing_origin;
alter table registry_generation drop column routing_table_id;
drop table routing_table;
delete from move_rate where kind = 'as';

-- Down Migration

create table routing_table (
  routing_table_id integer primary key generated always as identity,
  created_at timestamptz not null default now()
);
alter table registry_generation add column routing_table_id integer references routing_table on delete set null;
create index registry_generation_routing_table on registry_generation (routing_table_id);
create table routing_origin (
  routing_table_id integer not null references routing_table on delete cascade,
  as_number bigint not null check (as_number between 1 and 4294967295),
  ipv4 bytea not null,
  ipv6 bytea not null,
  primary key (routing_table_id, as_number)
);
create table routing_segments (
  routing_table_id integer not null references routing_table on delete cascade,
  first_address inet not null,
  segments bytea not null,
  primary key (routing_table_id, first_address)
);
