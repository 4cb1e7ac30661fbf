-- needs: nothing
-- The list of sites: a narrow row for each host, with what it is filtered and sorted by. Only one job writes it
-- (sites/sites-upkeep-store.ts), so that nothing on the way of leases and results has its indexes to keep. Nothing is copied
-- here: the job fills it, as it goes through all hosts again and again, and goes on where it stopped. Old coordinators may
-- still run: their results bring no counts of fetches and failures, and wait for the job's next round.

-- Up Migration

create table site (
  host_hash bigint primary key,
  host text collate "C" not null,
  name text collate "C",                     -- as people read it, where the host's name is Punycode; null: as it is
  -- ready: there is something to fetch, now or later; nothing-due, unresolved, unresolvable: there is not; opted-out, robots,
  -- payment, address: there must not be.
  standing text collate "C" not null,
  due_at timestamptz,
  subnet_id integer,
  crawler_id integer,                        -- by its subnet or by an override; null: nobody
  holder_id integer,                         -- of its subnet, as country
  country text collate "C",
  language text collate "C",
  tld text collate "C",                      -- null: its name is an address, or a single word
  channels smallint not null,
  pages integer not null,                    -- with a text of their own, or nearly that of another
  urls integer not null,
  due_urls integer not null,                 -- counted up to 10,000
  -- Of today and the six days before, counted as results came in; and their sums. failures: those of page_fetch with a blame.
  counted_day integer not null,              -- that the first of both lists is of: days since 2000-01-01
  failed_days integer[] not null,
  fetched_days integer[] not null,
  failures integer not null,
  fetches integer not null,
  fetched_at timestamptz,                    -- when one of its URLs was last fetched
  added_at timestamptz not null,
  rtt_ms real,                               -- of the decision that gave it its crawler
  bytes bigint not null                      -- fetched of it, ever
);
-- Most hosts of a million share a few values, so these are small: of equal keys only the rows are listed.
create index site_crawler on site (crawler_id);
create index site_holder on site (holder_id);
create index site_country on site (country);
create index site_language on site (language);
create index site_tld on site (tld);
create index site_subnet on site (subnet_id);
create index site_channel on site (host_hash) where channels > 0;
create index site_standing on site (standing, due_at);
-- Names that begin so, and all names below one: a range of names that are read backwards.
create unique index site_host on site (host);
create index site_name on site (name) where name is not null;
create index site_domain on site (reverse(host));
-- Orders, each with an end to it.
create index site_by_pages on site (pages, host_hash);
create index site_by_due on site (due_urls, host_hash);
create index site_by_failures on site (failures, host_hash);
create index site_by_fetched on site (fetched_at, host_hash);
create index site_by_added on site (added_at, host_hash);
create index site_by_rtt on site (rtt_ms, host_hash);
create index site_by_bytes on site (bytes, host_hash);

-- Hosts whose rows have to be looked at soon, appended by whoever changes them and taken away by the job.
create table site_touch (
  host_hashes bigint[] not null,
  -- Beside the hosts: what came in with a batch of results; null: nothing did.
  fetches integer[],
  failures integer[],
  fetched_at timestamptz[]
);

-- How far the job has come. One row.
create table site_upkeep (
  only_row boolean primary key default true check (only_row),
  reached_host bigint,                       -- its round has come so far; null: a round begins
  began_at timestamptz,                      -- the round
  finished_at timestamptz,                   -- the one before; null: none was finished yet
  took_seconds real,                         -- that one
  looked_at timestamptz                      -- hosts that came due, and subnets that went elsewhere, up to then
);
insert into site_upkeep default values;

-- Hosts that are new, whoever adds them.
create function note_new_sites() returns trigger language plpgsql as $$
begin
  insert into site_touch (host_hashes)
  select array_agg(host_hash)
  from (select host_hash, row_number() over () / 1000 as piece from added) a
  group by piece;
  return null;
end
$$;
create trigger site_added after insert on frontier_host
  referencing new table as added for each statement execute function note_new_sites();

-- Counts of the days before, moved on by so many days, with what today adds.
create function moved_days(days integer[], by integer, today integer) returns integer[]
language sql immutable parallel safe
as $$
  select array(
    select coalesce(days[nth - greatest(by, 0)], 0) + case when nth = 1 then today else 0 end
    from generate_series(1, 7) nth
  )
$$;

-- Down Migration

drop function moved_days;
drop trigger site_added on frontier_host;
drop function note_new_sites;
drop table site_upkeep;
drop table site_touch;
drop table site;
