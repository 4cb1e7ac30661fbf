-- Links to other sites travel in full again: naming those that the coordinator knew saved at most 1.8 % of a lease
-- (ops/decisions/0013).
-- Old coordinators: stop them first. They look for known links with every lease.
-- Up Migration

drop table channel_link;
alter table channel drop column changed_share;

-- Down Migration
