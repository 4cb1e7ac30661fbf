-- Crawlers that hand their subnets over, and crawlers that join a fleet at work.
-- Old coordinators: run on; to them a draining crawler is one like the others. What they fetch is not counted
-- in the new columns of frontier_host, so it weighs in balancing as if it were still to be fetched.
-- Up Migration

alter table crawler
  -- It is to hand its subnets over and gets no new leases; outlives its sessions and the coordinator's runs.
  add column draining_since timestamptz,
  -- 'crawler': it said that it leaves for good, and is taken back when it comes again.
  add column drain_asked_by text check (drain_asked_by in ('operator', 'crawler')),
  add column drain_subnets integer not null default 0,   -- that it had when the draining began
  -- It came into a fleet at work (or back into it) and was not yet given what is nearest to it.
  add column joining_since timestamptz;
-- Crawlers that are registered from now on; those that have worked already have joined.
alter table crawler alter column joining_since set default now();

-- What kinds of causes there are is the business of the code (frontier/ports.ts), which grows more of them.
alter table delegation
  drop constraint delegation_cause_check,
  add constraint delegation_cause_check check (cause ~ '^[a-z]+(-[a-z0-9]+)*$');
alter table probe_round
  drop constraint probe_round_cause_check,
  add constraint probe_round_cause_check check (cause ~ '^[a-z]+(-[a-z0-9]+)*$');

-- What a crawler that comes back had before it left.
create index delegation_history_left on delegation_history (from_crawler_id, changed_at)
  where cause in ('crawler-left', 'drained');

-- Subnets that went to relieve somebody, and may go home when there is room.
create index delegation_displaced on delegation (subnet_id) where cause = 'overload';

-- What a host's pages weigh, counted with each result: URLs fetched at least once, all fetches, their bytes.
alter table frontier_host
  add column fetched_urls integer not null default 0,
  add column fetches integer not null default 0,
  add column fetched_bytes bigint not null default 0;
update frontier_host h
set fetched_urls = u.fetched
from (select host_hash, count(*) as fetched from frontier_url where visits > 0 group by host_hash) u
where u.host_hash = h.host_hash;

-- Down Migration
