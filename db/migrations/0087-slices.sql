-- needs: nothing
-- Slices of the web (coordinator/slices): which there are, who has which hosts, and what moves between them. By default there is
-- one, number 0, with all hosts, in the schema of the shared tables. Old coordinators know of no other, and run on as long as
-- there is none.

-- Up Migration

-- Shared: the slices. A host's bucket is the first 12 bits of its hash, from the smallest hash on.
create table web_slice (
  slice_number integer primary key check (slice_number between 0 and 4095),
  schema_name text collate "C",              -- null: that of the shared tables, which is slice 0's
  server_url text collate "C",               -- without a password; null: the server of the shared tables
  state text not null default 'active' check (state in ('preparing', 'active', 'draining')),
  added_at timestamptz not null default now(),
  added_by text not null,
  fault text,                                -- why it is not at work, as the coordinator that leads found it; null: it is
  check ((slice_number = 0) = (schema_name is null)),
  unique nulls not distinct (server_url, schema_name)
);
insert into web_slice (slice_number, added_by) values (0, 'migration');

-- Every bucket has one owner: ranges do not overlap, and whoever changes them leaves all 4096 owned.
create table slice_range (
  buckets int4range primary key check (buckets <@ int4range(0, 4096) and not isempty(buckets)),
  slice_number integer not null references web_slice,
  exclude using gist (buckets with &&)
);
insert into slice_range (buckets, slice_number) values (int4range(0, 4096), 0);

-- Hosts on their way from one slice to another. Each stage is left by one transaction of one server, and is gone through again
-- by whoever finds it after the mover was killed (coordinator/slices/move-writes.ts).
create table slice_move (
  move_number bigint primary key generated always as identity,
  buckets int4range not null check (buckets <@ int4range(0, 4096) and not isempty(buckets)),
  from_slice integer not null references web_slice,
  to_slice integer not null references web_slice,
  stage text not null default 'planned' check (stage in ('planned', 'letting-go', 'copying', 'handing-over', 'clearing', 'done')),
  asked_at timestamptz not null default now(),
  asked_by text not null,
  stage_at timestamptz not null default now(),
  finished_at timestamptz,
  hosts bigint,                              -- that were copied
  fault text,                                -- why its stage could not be left when it was last tried
  check (from_slice <> to_slice),
  exclude using gist (buckets with &&) where (stage <> 'done')
);
create index slice_move_open on slice_move (move_number) where stage <> 'done';

-- Whose turn it is to work at which slice: a coordinator that runs (coordinator/slices/leads).
create table slice_lead (
  slice_number integer primary key references web_slice on delete cascade,
  coordinator_number integer,                -- null: nobody has taken it yet
  since timestamptz not null default now()
);

-- Each slice's own: what of the hosts it may write. The one truth for its transactions, which hold a shared lock of it.
create table slice_self (
  only_row boolean primary key default true check (only_row),
  slice_number integer not null default 0,
  held int4multirange not null default '{[0,4096)}'
);
insert into slice_self default values;

-- Effects of results on hosts of other slices: the rows of the outbox that are under way to each, in one shipment at a time.
alter table link_outbox add column to_slice integer;  -- null: for this slice
create table slice_shipment (
  to_slice integer primary key,
  shipment_number bigint not null,           -- counts up
  outbox_numbers bigint[] not null           -- empty: nothing is under way
);
-- Where they arrive: the latest that came from each.
create table slice_arrival (
  from_slice integer primary key,
  shipment_number bigint not null
);

-- Down Migration

drop table slice_arrival;
drop table slice_shipment;
alter table link_outbox drop column to_slice;
drop table slice_self;
drop table slice_lead;
drop table slice_move;
drop table slice_range;
drop table web_slice;
