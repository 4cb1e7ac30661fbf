-- Delegations finer than a subnet: one host whose name resolves differently by place (GeoDNS), and parts of a
-- leaf whose addresses measure far apart. A host without one is crawled by its subnet's crawler.
-- Old coordinators: run on; they give such hosts to their subnet's crawler.
-- Up Migration

create table finer_delegation (
  finer_id integer primary key generated always as identity,
  subnet_id integer not null references subnet,   -- the leaf that is split; the subnet in which the host was found
  host_hash bigint unique,                        -- one host …
  first_address inet,                             -- … or a part of the leaf
  last_address inet,
  crawler_id integer not null references crawler,
  round_id integer not null references probe_round,   -- the latest round with an answer
  cause text not null check (cause ~ '^[a-z]+(-[a-z0-9]+)*$'),
  measured boolean not null,                      -- false: nobody measured for this crawler; to be tried again
  rtt_ms real,
  runner_up_id integer references crawler,
  runner_up_rtt_ms real,
  subnet_rtt_ms real,                             -- what the subnet's own crawler measured in that round
  seen jsonb not null default '[]',               -- a host: [{crawlerId (null: the coordinator), addresses}]
  found_at timestamptz not null,
  delegated_at timestamptz not null,              -- since when this crawler has it
  review_at timestamptz not null,                 -- when it is probed again
  check (num_nonnulls(host_hash, first_address) = 1),
  check (num_nonnulls(first_address, last_address) <> 1),
  check (first_address is null or family(first_address) = family(last_address) and first_address <= last_address)
);
create unique index finer_delegation_part on finer_delegation (subnet_id, first_address) where host_hash is null;
create index finer_delegation_crawler on finer_delegation (crawler_id);
create index finer_delegation_review on finer_delegation (review_at);

-- Null: the host goes with its subnet. Kept in step by whoever writes finer_delegation, addresses or subnet_id.
alter table frontier_host add column finer_id integer;
create index frontier_host_finer on frontier_host (finer_id, due_at) where finer_id is not null;

-- A round for something finer names the subnet around it apart, so that what is known of the subnet as a
-- whole does not change by it.
alter table probe_round
  alter column subnet_id drop not null,
  add column within_subnet_id integer references subnet,
  add constraint probe_round_of_one check (num_nonnulls(subnet_id, within_subnet_id) = 1);

-- Down Migration
