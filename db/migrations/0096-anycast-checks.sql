-- needs: nothing
-- tables: shared
-- Clouds' published places and ranges in which far crawlers were asked whether they answer from many places, and did not:
-- that costs probes once. Older coordinators do without it.

-- Up Migration

create table anycast_check (
  place text primary key,                     -- "aws eu-central-1", or the source and the range where it names no place
  checked_at timestamptz not null
);

-- Down Migration

drop table anycast_check;
