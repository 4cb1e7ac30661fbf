-- needs: nothing
-- What people were told of alerts, by which channel, and what came of it. Old coordinators tell nobody anything.

-- Up Migration

-- One row for each rule that finds something, or did within the time in which it is not told twice.
create table alert_state (
  name text primary key,                     -- of the rule (overview/alert-rules)
  severity text not null,
  words text not null,
  advice text not null,
  targets text[] not null,                   -- crawlers, releases …; a thousand at most
  began_at timestamptz not null,
  ended_at timestamptz,                      -- null: it holds
  pending_since timestamptz,                 -- people are to be told something since then; null: they know
  told_at timestamptz,                       -- when they were last told that it holds
  told_targets text[] not null,              -- that they were told of
  is_told boolean not null,                  -- as far as people know, it holds
  acknowledged_by text,                      -- null: nobody has
  acknowledged_at timestamptz,
  acknowledged_words text,
  acknowledged_targets text[]                -- anything beyond them brings it back
);

-- Where alerts are sent, as the file of the coordinator that leads says.
create table alert_channel (
  name text primary key,
  kind text not null,                        -- webhook, email
  place text not null,                       -- in words, without anything secret
  least text not null,                       -- severity from which on it is told
  delivered_at timestamptz,
  failing_since timestamptz,                 -- null: the last attempt succeeded, or there was none
  failures integer not null default 0,       -- in a row
  failure text not null default '',
  tested_at timestamptz
);

-- A message for one channel: what is told, and what came of it.
create table alert_message (
  message_id text primary key,               -- the same at every attempt, so that a receiver knows a repetition
  channel text not null,
  told jsonb not null,                       -- the alerts, as they were
  made_at timestamptz not null,
  next_try_at timestamptz,                   -- null: there will be none
  claimed_until timestamptz,                 -- whoever sends it has so long
  tries integer not null default 0,
  outcome text not null default 'waiting' check (outcome in ('waiting', 'delivered', 'given-up')),
  words text not null default '',            -- of the last failure
  ended_at timestamptz
);
create index alert_message_waiting on alert_message (next_try_at) where outcome = 'waiting';
create index alert_message_by_channel on alert_message (channel, made_at);

-- Down Migration

drop table alert_message;
drop table alert_channel;
drop table alert_state;
