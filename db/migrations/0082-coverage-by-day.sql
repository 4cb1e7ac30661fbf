-- needs: nothing
-- How much of each country and language is crawled, day by day (reports). Old coordinators neither write nor read it.

-- Up Migration

-- A row for each country and language of the hosts that were known on that day. Hosts and pages are counted whole; what is
-- fresh is counted among `sampled_pages` of them, which are a part where the index is large.
create table coverage_day (
  day date not null,
  country text not null,                     -- of the host's subnet; empty: not known
  language text not null,                    -- of most of the host's pages; empty: not known yet
  hosts integer not null,
  pages bigint not null,
  bytes bigint not null,                     -- of all fetches so far
  sampled_pages bigint not null,
  fresh_7 bigint not null,                   -- of those: fetched within 7 days
  fresh_30 bigint not null,
  counted_at timestamptz not null,
  primary key (day, country, language)
);

-- Down Migration

drop table coverage_day;
