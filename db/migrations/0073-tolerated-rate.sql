-- needs: nothing
--
-- The rate that a host tolerates, as the crawler that asked it last found it (frontier/kept-rate.ts): perHour, limitedBy,
-- refusedPerHour, refusedAt, at. Null: nothing limits it, or nobody has told. Old coordinators leave it as it is.

-- Up Migration

alter table frontier_host add column tolerated jsonb;

-- Down Migration

alter table frontier_host drop column tolerated;
