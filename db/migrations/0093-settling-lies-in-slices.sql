-- How far claims are settled is each slice's own (0092).
-- needs: all coordinators stopped
-- tables: shared

-- Up Migration

alter table coordinator_self
  drop column settled_claims,
  drop column host_cursor,
  drop column url_cursor_host,
  drop column url_cursor_url,
  drop column settling_waits;

-- Down Migration

alter table coordinator_self
  add column settled_claims text,
  add column host_cursor bigint,
  add column url_cursor_host bigint,
  add column url_cursor_url bigint,
  add column settling_waits boolean not null default false;
