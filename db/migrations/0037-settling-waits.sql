-- Whether something had to wait while claims were settled, beside how far that has come.
-- Old coordinators: run on. What they note in settled_claims instead is taken for other claims, and gone through anew.
-- Up Migration

alter table coordinator_self
  add column settling_waits boolean not null default false;

-- Down Migration
