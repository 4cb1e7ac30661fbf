-- The change feed: what visits found new, changed or gone, in an order that can be read by cursor. Results write into
-- the inbox, in their own transaction. One appender at a time (it holds the row of change_feed) takes committed rows
-- out of it, gives them the next numbers and puts them into the feed: numbers are committed in their order, with
-- nothing missing below the last one. A number from a sequence would not do: a later one may be committed first, and
-- whoever has read that far would never see the earlier one.
-- Old coordinators: run on, and what they find is not in the feed.
-- Up Migration

-- One row. Numbers through removed_through are gone; a cursor before it has missed some of them.
create table change_feed (
  only_row boolean primary key default true check (only_row),
  last_number bigint not null default 0,
  removed_through bigint not null default 0,
  check (removed_through <= last_number)
);
insert into change_feed default values;

create table page_change_inbox (
  inbox_number bigint primary key generated always as identity,
  host_hash bigint not null,
  url_hash bigint not null,
  url text collate "C" not null,
  kind text not null,
  seen_at timestamptz not null,              -- when it was fetched
  status smallint,
  reason text,
  language text,
  digest_before text,                        -- SHA-256 of the body, hex
  digest_after text,
  simhash_distance smallint,                 -- bits of 64 in which the texts' simhashes differ
  title_before text,
  title_after text,
  words_before integer,
  words_after integer,
  links_before integer,
  links_after integer,
  links_added integer,
  links_removed integer,
  location text                              -- where a redirect leads
);

create table page_change (
  change_number bigint not null,
  noted_at timestamptz not null,             -- when it got its number
  host_hash bigint not null,
  url_hash bigint not null,
  url text collate "C" not null,
  kind text not null check (kind in ('first-seen', 'changed', 'links-changed', 'came-back', 'redirected', 'gone', 'given-up')),
  seen_at timestamptz not null,
  status smallint,
  reason text,
  language text,
  digest_before text,
  digest_after text,
  simhash_distance smallint,
  title_before text,
  title_after text,
  words_before integer,
  words_after integer,
  links_before integer,
  links_after integer,
  links_added integer,
  links_removed integer,
  location text,
  primary key (host_hash, change_number)
) partition by hash (host_hash);
create index page_change_number on page_change (change_number);

do $$
begin
  for part in 0..7 loop
    execute format('create table page_change_%s partition of page_change for values with (modulus 8, remainder %s)', part, part);
  end loop;
end $$;

-- Down Migration
