-- What a channel of alerts has still to tell stands with the channel, and no message is kept once it was told: nobody read them. An
-- acknowledgement is one column. Older coordinators write the columns and the table that go.
-- needs: all coordinators stopped

-- Up Migration

alter table alert_state add column acknowledged jsonb;  -- by, at, note and the targets that it named then; null: nobody has
update alert_state
set acknowledged = jsonb_build_object(
  'by', acknowledged_by, 'at', acknowledged_at, 'note', coalesce(acknowledged_words, ''), 'targets', coalesce(acknowledged_targets, '{}')
)
where acknowledged_by is not null;
alter table alert_state
  drop column acknowledged_by,
  drop column acknowledged_at,
  drop column acknowledged_words,
  drop column acknowledged_targets;

alter table alert_channel
  add column told jsonb,                  -- the alerts that it is to tell, as they were; null: none
  add column message_id text,             -- the same at every attempt, so that a receiver knows a repetition
  add column made_at timestamptz,
  add column next_try_at timestamptz,
  add column claimed_until timestamptz,   -- whoever sends it has so long
  add column tries integer not null default 0;
update alert_channel
set told = waiting.told, message_id = waiting.message_id, made_at = waiting.made_at, next_try_at = now()
from (
  select channel, jsonb_agg(alert order by made_at, place) as told, max(message_id) as message_id, max(made_at) as made_at
  from alert_message, jsonb_array_elements(told) with ordinality as parts (alert, place)
  where outcome = 'waiting'
  group by channel
) waiting
where waiting.channel = name;

do $$
begin
  if exists (select from alert_message) then
    raise notice 'dropping % messages about alerts that were told or given up; those that wait are kept with their channels',
      (select count(*) from alert_message where outcome <> 'waiting');
  end if;
end $$;
drop table alert_message;

-- Down Migration

create table alert_message (
  message_id text primary key,
  channel text not null,
  told jsonb not null,
  made_at timestamptz not null,
  next_try_at timestamptz,
  claimed_until timestamptz,
  tries integer not null default 0,
  outcome text not null default 'waiting' check (outcome in ('waiting', 'delivered', 'given-up')),
  words text not null default '',
  ended_at timestamptz
);
create index alert_message_waiting on alert_message (next_try_at) where outcome = 'waiting';
create index alert_message_by_channel on alert_message (channel, made_at);
alter table alert_channel
  drop column told,
  drop column message_id,
  drop column made_at,
  drop column next_try_at,
  drop column claimed_until,
  drop column tries;
alter table alert_state
  add column acknowledged_by text,
  add column acknowledged_at timestamptz,
  add column acknowledged_words text,
  add column acknowledged_targets text[],
  drop column acknowledged;
