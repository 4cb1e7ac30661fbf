-- Budgets and turns by registrable domain. Hosts that stand here already have no domain yet: it is noted when DNS is asked for
-- them again, within a day or so, and until then each counts for itself. The index is made by one pass over the hosts.
-- Coordinators of before cannot read the outbox as it is written from now on.
-- needs: all coordinators stopped
-- tables: slice

-- Up Migration

alter table frontier_host
  add column domain text collate "C",                  -- registrable (core/ip/registrable-domain); null: not noted yet
  add column domain_place integer not null default 0;  -- hosts that its domain had before it; 0 also of those that people named

-- As frontier_host_ready, of the first 20 hosts of each domain (frontier/budgets.ts: firstHosts): a crawler that looks into a
-- subnet finds them behind however many hosts of one domain.
create index frontier_host_ready_first on frontier_host (subnet_id, greatest(due_at, not_before))
  where lease_id is null and state = 'resolved' and due_at is not null and domain_place < 20;

-- Registrable domains whose hosts, or whose pages' links, have brought hosts into the frontier of this slice.
create table domain_count (
  domain text collate "C" primary key,
  hosts integer not null,                    -- that links brought in
  counted_on date not null,                  -- what follows is of this day (UTC)
  new_hosts integer not null,
  linked integer not null,                   -- what its pages' links brought: 1 for a host, more for one of a new domain
  left_out bigint not null                   -- URLs on its new hosts that were neither let in nor kept; of all days
);
create index domain_count_left_out on domain_count (left_out desc) where left_out > 0;

-- What results do to hosts that wait until their domain, or the site that links to them, may have more (frontier/domain-store.ts).
create table deferred_link (
  waits_for text collate "C" not null,       -- the domain, or the linking site
  due_on date not null,                      -- goes back to the outbox then
  crawler_id integer not null,               -- as in link_outbox
  effects integer not null,
  packed bytea not null
);
create index deferred_link_due on deferred_link (due_on);
create index deferred_link_waits_for on deferred_link (waits_for);

-- Down Migration

insert into link_outbox (crawler_id, effects, packed) select crawler_id, effects, packed from deferred_link;
drop table deferred_link;
drop table domain_count;
drop index frontier_host_ready_first;
alter table frontier_host
  drop column domain_place,
  drop column domain;
