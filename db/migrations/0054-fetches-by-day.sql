-- Fetches lie in a table for each day (UTC), so that old days are dropped instead of deleted row by row. Coordinators make
-- the days ahead (results/fetch-day-store.ts); what finds no day lies in page_fetch_default until one is made for it.
-- Old coordinators: run on; what they write goes where it belongs, or into page_fetch_default.
-- What it takes: no row is rewritten. The fetches that are there stay in their eight tables, which become one part of the
-- new one, up to the end of today; Postgres reads them through once to be sure, and results wait meanwhile. They are
-- dropped as a whole when the last of them is older than retention.fetchDays.
-- Up Migration

alter table page_fetch rename to page_fetch_before;
alter index page_fetch_url rename to page_fetch_before_url;
alter index page_fetch_host rename to page_fetch_before_host;
alter index page_fetch_time rename to page_fetch_before_time;
alter index page_fetch_failed rename to page_fetch_before_failed;

create table page_fetch (like page_fetch_before) partition by range (fetched_at);
create index page_fetch_url on page_fetch (host_hash, url_hash, fetched_at);
create index page_fetch_host on page_fetch (host_hash, fetched_at);
create index page_fetch_time on page_fetch (fetched_at);
create index page_fetch_failed on page_fetch (fetched_at) where blame is not null;

do $$
begin
  if exists (select from page_fetch_before) then
    execute format('alter table page_fetch attach partition page_fetch_before for values from (minvalue) to (%L)',
      (select date_trunc('day', greatest(now(), max(fetched_at)), 'UTC') + interval '1 day' from page_fetch_before));
  else
    drop table page_fetch_before;
  end if;
end $$;

create table page_fetch_default partition of page_fetch default;

-- Down Migration
