-- What makes it cheap to let old rounds, changes of delegations and rejected URLs go; and what is left of them: figures by
-- the day.
-- Old coordinators: run on. They do not note that a rejected URL was seen again.
-- What it takes: two indexes are made, over the changes of delegations and over rejected URLs. Rejected URLs that are there
-- count as seen at the migration.
-- Up Migration

-- A round may be let go while a change of the subnet's delegation is still told; what decides a delegation is kept by
-- whoever deletes rounds (delegation/old-round-store.ts). As foreign keys, every round that goes would cost a scan of these
-- tables, or an index on each.
alter table delegation drop constraint delegation_round_id_fkey;
alter table delegation_history drop constraint delegation_history_round_id_fkey;
create index finer_delegation_round on finer_delegation (round_id);

create index delegation_history_time on delegation_history (changed_at);

alter table rejected_url add column last_seen_at timestamptz not null default now();
create index rejected_url_seen on rejected_url (last_seen_at);

-- One row a day (UTC). The sums are those of minute_figures; leases are counted as they are let go.
create table day_figures (
  day date primary key,
  minutes integer not null default 0,        -- in which somebody wrote figures
  fetches bigint not null default 0,
  pages bigint not null default 0,
  fetched_bytes bigint not null default 0,
  shipped_bytes bigint not null default 0,
  rounds bigint not null default 0,
  probes bigint not null default 0,
  target_failures bigint not null default 0,
  network_failures bigint not null default 0,
  crawler_failures bigint not null default 0,
  our_failures bigint not null default 0,
  leases_done bigint not null default 0,
  leases_expired bigint not null default 0,
  leases_returned bigint not null default 0,
  leased_urls bigint not null default 0
);

-- Down Migration
