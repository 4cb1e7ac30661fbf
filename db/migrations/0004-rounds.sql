-- Probe rounds that look for anycast, that count the crawl's own first fetch as a measurement, and that are
-- tried again less and less often where nobody answers.
-- Old coordinators: run on; they try unmeasured subnets again whenever they look, and find none of the marks.
-- Up Migration

alter table probe
  -- 'get': the connect time of the crawl's own fetch, which cost no probe
  add column how text not null default 'probe' check (how in ('probe', 'get'));

alter table delegation
  -- The range answers from many places at once: it was given away by load, and its time says nothing.
  add column anycast boolean not null default false,
  -- Rounds in a row that nobody answered, and when the next one is due; null: nothing is to be tried again.
  add column unanswered_rounds smallint not null default 0,
  add column retry_at timestamptz,
  -- 'first-fetch': for the time being, until the crawler's own first fetch has been held against others.
  drop constraint delegation_cause_check,
  add constraint delegation_cause_check check (cause ~ '^[a-z]+(-[a-z0-9]+)*$');
create index delegation_unmeasured on delegation (retry_at) where not measured;
create index delegation_anycast on delegation (subnet_id) where anycast;

-- The method that the decision compares; probes by others were made on the way to it, and are not compared.
-- Null: nobody was asked, or an older coordinator recorded it.
alter table probe_round add column method text;

-- 'denied': the partner of the crawler that had it does not allow it.
alter table probe_round
  drop constraint probe_round_cause_check,
  add constraint probe_round_cause_check check (cause ~ '^[a-z]+(-[a-z0-9]+)*$');

-- Down Migration
