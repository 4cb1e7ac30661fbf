-- Which crawlers contact sites over IPv6, as their last hello said; null: none said so yet. Coordinators of the last
-- release neither read nor write it.
-- needs: nothing
-- tables: shared

-- Up Migration

alter table crawler add column speaks_ipv6 boolean;

-- Down Migration

alter table crawler drop column speaks_ipv6;
