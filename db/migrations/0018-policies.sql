-- What operators change of the settings while coordinators run. The table `setting` (0001) holds the values that are
-- put over those of the coordinator's file, by name; here is who changed what, so that one can go back, and what the
-- file says, so that commands and pages know it too.
-- Old coordinators: run on, by their files alone.
-- Up Migration

create table policy_version (
  -- Without gaps from 1 on: the latest is what a change must be based on.
  version integer primary key,
  changed_at timestamptz not null,
  changed_by text not null,
  words text not null default '',            -- why, as the operator says
  takes_back integer references policy_version,
  changes jsonb not null                     -- [{name, before, after}]; null: the file's value holds
);

-- The policies of the file of the coordinator that started last, in full.
create table policy_file (
  only_one boolean primary key default true check (only_one),
  settings jsonb not null,
  stated_at timestamptz not null
);

-- Down Migration
