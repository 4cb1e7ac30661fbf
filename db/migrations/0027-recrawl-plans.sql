-- How often pages are fetched again: plans as they were made, and what each host has in the one that is in force.
-- Old coordinators: run on, and fetch again after the fixed interval; their visits leave no gap in page_fetch.
-- Up Migration

-- Time since the visit before, where it can be believed (recrawl/change-rate); null: the first visit, or a clock
-- that jumped.
alter table page_fetch add column gap_seconds real;

-- One row for each time that the intervals were made anew; the newest is in force.
create table recrawl_plan (
  plan_id integer primary key generated always as identity,
  made_at timestamptz not null,
  strategy text not null,
  -- Why it was made, or why nothing else could be, in words.
  reason text not null,
  -- recrawl/recrawl-plan: multiplier, groups, capacity, planned and achieved rates.
  plan jsonb not null
);

-- Channels: a host is one (SARSS section 2.1).
create table recrawl_host (
  host_hash bigint not null,
  -- Mean of its pages' estimated changes a day, and how many pages that is.
  changes_per_day real not null,
  pages integer not null,
  recrawl_group smallint,                    -- 0: changes most often; null: not in one yet
  multiplier double precision,               -- larger than the plan's, where the host is asked as often as it may be
  -- Since the last plan that measured them: mean time between a page's fetches, and to download all of its pages once.
  gap_seconds real,
  download_seconds real,
  primary key (host_hash)
) partition by hash (host_hash);

do $$
begin
  for part in 0..7 loop
    execute format('create table recrawl_host_%s partition of recrawl_host for values with (modulus 8, remainder %s)', part, part);
  end loop;
end $$;

-- URLs that are gone, or whose host had no public address, are looked at again when their wait is over.
create index frontier_url_given_up on frontier_url (next_fetch_at)
  where state = 'gone' or (state = 'refused' and last_outcome = 'refused-address');

-- Down Migration
