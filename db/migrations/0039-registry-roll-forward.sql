-- A generation that was rolled back can be put in force again: what it had made of subnets and holders is kept beside
-- what they were before it. Of generations that were rolled back earlier nothing is kept; their files can be imported again.
-- The two roots that stand in where there is no registry are a generation in a state of their own: no import.
-- Old coordinators: run on. They know no job of the new kind: roll forward with the new version's commands and pages. Where the
-- roots stand in, start them anew after this: they read no generation in the new state.
-- Up Migration

alter table registry_generation
  add column rolled_back_at timestamptz,  -- null: it is in force, or was rolled back before this was kept
  add column rolled_back_to integer;      -- in force after that; null: none was

alter table registry_generation
  drop constraint registry_generation_state_check,
  add constraint registry_generation_state_check check (state in ('staged', 'applied', 'rolled-back', 'stand-in'));

update registry_generation g
set state = 'stand-in'
where state = 'applied' and not exists (select from registry_source s where s.generation = g.generation)
  and exists (
    select from subnet c
    where c.added_in = g.generation and c.name = 'root' and c.first_address = '0.0.0.0' and c.last_address = '255.255.255.255'
  );

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
