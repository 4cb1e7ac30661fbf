-- A crawler's hosts are found by subnet in the order in which they may be leased: due, and rested. One that rests is not
-- gone past by every request that looks for work, and one that was leased stands behind those that wait.
-- Old coordinators: run on, slower for a subnet with very many hosts. The new index reads all hosts that
-- are due once, during which leases and results wait.
-- Up Migration

create index frontier_host_ready on frontier_host (subnet_id, greatest(due_at, not_before))
  where lease_id is null and state = 'resolved' and due_at is not null;
drop index frontier_host_due;

-- Down Migration

create index frontier_host_due on frontier_host (subnet_id, due_at) where lease_id is null and state = 'resolved';
drop index frontier_host_ready;
