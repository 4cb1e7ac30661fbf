-- Alerts that somebody has seen and wants to hear no more of until an hour that is named.
-- Old coordinators: may go on; they tell what is muted.
-- Up Migration

create table alert_mute (
  name text not null,                        -- of the rule
  target text not null default '',           -- a crawler or release; empty: all of the rule
  until timestamptz not null,
  reason text not null,
  muted_by text not null,
  muted_at timestamptz not null,
  primary key (name, target)
);

-- Down Migration

drop table alert_mute;
