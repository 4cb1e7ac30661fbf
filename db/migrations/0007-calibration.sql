-- Decisions that are probed again after a while, the oldest first.
-- Old coordinators: run on.
-- Up Migration

create index delegation_age on delegation (delegated_at, subnet_id)
  where cause = 'probe-round' and measured;

-- Down Migration
