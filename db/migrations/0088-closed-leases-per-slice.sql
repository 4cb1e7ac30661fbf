-- needs: nothing
-- How closed leases ended is counted in the slice that lets them go, and told to the shared day_figures in reports, each of
-- which counts once, whoever is ended in between (coordinator/frontier/closed-lease-store.ts).

-- Up Migration

-- A slice's: what no report has yet, and the report that is under way.
create table closed_lease_day (
  day date primary key,
  leases_done bigint not null,
  leases_expired bigint not null,
  leases_returned bigint not null,
  leased_urls bigint not null
);
create table closed_lease_report (
  only_row boolean primary key default true check (only_row),
  report_number bigint not null default 0,   -- counts up
  days jsonb                                 -- as rows of closed_lease_day; null: none is under way
);
insert into closed_lease_report default values;

-- Shared: the latest report that came from each slice.
create table closed_lease_receipt (
  slice_number integer primary key,
  report_number bigint not null
);

-- Down Migration

drop table closed_lease_receipt;
drop table closed_lease_report;
drop table closed_lease_day;
