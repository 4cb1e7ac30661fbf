-- A generation that was rolled back can be put in force again: what it had made of subnets and holders is kept beside
-- what they were before it. Of generations that were rolled back earlier nothing is kept; their files can be imported again.
-- Old coordinators: run on. They know no job of the new kind: roll forward with the new version's commands and pages.
-- Up Migration

alter table registry_generation
  add column rolled_back_at timestamptz,  -- null: it is in force, or was rolled back before this was kept
  add column rolled_back_to integer;      -- in force after that; null: none was

-- As a generation had left what `subnet_before` and `holder_before` tell the past of; only while it is rolled back.
create table subnet_after (
  generation integer not null references registry_generation,
  subnet_id integer not null,
  parent_id integer,
  holder_id integer,
  country text,
  registry text not null,
  name text not null,
  crosses boolean not null,
  removed_in integer,
  primary key (generation, subnet_id)
);

create table holder_after (
  generation integer not null references registry_generation,
  holder_id integer not null references holder,
  name text not null,
  handle text,
  primary key (generation, holder_id)
);

alter table registry_job
  drop constraint registry_job_kind_check,
  add constraint registry_job_kind_check check (kind in ('fetch', 'plan', 'apply', 'rollback', 'rollforward'));
