-- What a host's best due URL is worth under the frontier's order, so that hosts are chosen by it too; and what a host's
-- leases leave of the mix of new and old URLs between two whole numbers.
-- Old coordinators: run on. They choose hosts by how long they are due alone; what a host is worth is reckoned anew by
-- the others within minutes.
-- Up Migration

alter table frontier_host
  -- The highest score of its new URLs that are due and not in hand; null: none, not known, or the order does not ask.
  add column worth double precision,
  -- Below 1: see frontier/order/mix; null: no lease was mixed yet.
  add column mix_carry double precision;

-- Empty where the order does not ask.
create index frontier_host_worthiest on frontier_host (worth desc, host_hash)
  where worth is not null and lease_id is null and state = 'resolved';

-- Hosts at their bounds, those that leave out most first: for people and gauges.
create index frontier_host_left_out on frontier_host (left_out_urls desc, host_hash) where left_out_urls > 0;

-- Down Migration
