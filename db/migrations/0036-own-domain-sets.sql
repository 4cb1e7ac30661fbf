-- The coordinator's own domain sets, as it said itself when it last started: `nearcrawl who` reads them where no
-- coordinator runs.
-- Old coordinators: run on, and leave what was stated.
-- Up Migration

alter table coordinator_place
  add column domain_sets text[] not null default '{}';

-- Down Migration
