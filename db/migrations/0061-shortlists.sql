-- Of hosts with many due URLs those that an order other than breadth-first puts first, so that a lease does not score
-- thousands of URLs to choose twenty. Made by the lease that finds none, taken from by those after it, for minutes.
-- Old coordinators: run on, and score what they look at for each lease. Nothing is to be filled: a host without a
-- shortlist gets one with its next lease. After a crash of the server the table is empty, which costs each such host
-- one look.
-- Up Migration

create unlogged table url_shortlist (
  host_hash bigint primary key,
  order_name text not null,                  -- the order that it was made for
  made_at timestamptz not null,
  -- Keys of URLs that were never visited, the highest score first, with their scores; and of others. So many of each are used up.
  new_urls bigint[] not null,
  new_worths real[] not null,
  old_urls bigint[] not null,
  new_used integer not null default 0,
  old_used integer not null default 0
) with (fillfactor = 70);
-- Hashes do not get smaller by being compressed.
alter table url_shortlist
  alter column new_urls set storage external,
  alter column new_worths set storage external,
  alter column old_urls set storage external;
-- Old ones are dropped by it.
create index url_shortlist_made on url_shortlist (made_at);

-- Down Migration

drop table url_shortlist;
