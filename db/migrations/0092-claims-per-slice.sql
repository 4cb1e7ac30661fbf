-- What coordinators under coordinators keep, where the web lies in slices: how far each slice has gone through its hosts after claims
-- have changed, and what has arrived there of a relative's URLs (coordinator/federation).
-- needs: all coordinators stopped
-- tables: slice

-- Up Migration

-- The claims by which the frontier and foreign_url were last gone through, and how far that has come; null: done.
create table claims_settling (
  only_row boolean primary key default true check (only_row),
  settled_claims text,
  host_cursor bigint,
  url_cursor_host bigint,
  url_cursor_url bigint,
  settling_waits boolean not null default false  -- something had to wait while claims were settled
);
insert into claims_settling default values;

-- Slice 0 needs none: its number is committed with the relative's row.
create table exchange_arrival (
  peer_id integer primary key,
  link_id uuid not null,
  received_number bigint not null
);

-- Down Migration

drop table exchange_arrival;
drop table claims_settling;
