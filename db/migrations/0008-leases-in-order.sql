-- Leases go to the hosts that are due longest. A crawler with many subnets finds them in this order and stops
-- when it has enough, instead of sorting everything that is due for each request.
-- Old coordinators: run on.
-- Up Migration

create index frontier_host_longest_due on frontier_host (due_at, host_hash)
  where lease_id is null and state = 'resolved';

-- Down Migration
