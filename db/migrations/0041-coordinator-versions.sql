-- Which versions of this software have run as a coordinator on this database: crawlers of the same versions are ours,
-- whatever else a crawler states is its word alone.
-- Old coordinators: run on; they write nothing here, and go on not comparing crawlers of different versions.
-- Up Migration

create table coordinator_version (
  version text collate "C" primary key,
  first_ran_at timestamptz not null default now()
);
-- The only one before this table.
insert into coordinator_version (version) values ('0.1.0');

-- Of a crawler's comparisons, those that came to nothing.
create index double_check_untold on double_check (crawler_id, decided_at) where verdict = 'cannot-tell';

-- Down Migration

drop index double_check_untold;
drop table coordinator_version;
