-- URLs that are held over their hosts' budgets are packed, up to 64 of a host in a row, in place of a row of frontier_url
-- and two index entries for each: of the 79 URLs that a page of a new site names, 42 are. Each becomes a row of frontier_url
-- when the host's budget has room for it.
-- Old coordinators: stop them first. They hold URLs in frontier_url, and add to it again what is packed. What is held is packed
-- and deleted at once, by the index of held URLs; the space is used again by new ones.
-- Up Migration

create table held_urls (
  host_hash bigint not null,
  batch bigint not null generated always as identity, -- in the order in which they were found
  held_at timestamptz not null,
  released integer not null default 0,       -- so many of them, the first ones, are in frontier_url by now
  depth smallint not null,
  redirects smallint not null,
  lists smallint not null,
  url_hashes bigint[] not null,
  links integer[] not null,                  -- that lead to each, as far as they came when it was named first
  urls text collate "C" not null,            -- a line for each
  primary key (host_hash, batch)
) with (fillfactor = 80);                    -- so that `released` moves on where the row is

-- In the row as long as it fits into a page, compressed from 2 KB on, as links are (0052).
alter table held_urls
  alter column url_hashes set storage main,
  alter column links set storage main,
  alter column urls set storage main;
do $$
begin
  alter table held_urls alter column urls set compression lz4;
exception when feature_not_supported then
  null;
end $$;

-- A row for each URL, its columns named as those of frontier_url.
create view held_url as
select b.host_hash, t.url_hash, t.url, b.depth, b.redirects, b.lists, t.links as back_links, b.held_at as discovered_at,
  b.batch, t.place
from held_urls b
cross join lateral unnest(b.url_hashes, b.links, string_to_array(b.urls, e'\n'))
  with ordinality as t (url_hash, links, url, place)
where t.place > b.released;

insert into held_urls (host_hash, held_at, depth, redirects, lists, url_hashes, links, urls)
select host_hash, min(discovered_at), depth, redirects, lists, array_agg(url_hash order by place),
  array_agg(back_links order by place), string_agg(url, e'\n' order by place)
from (
  select *, row_number() over (
      partition by host_hash, depth, redirects, lists order by discovered_at, url_hash
    ) as place
  from frontier_url
  where state = 'held'
) held
group by host_hash, depth, redirects, lists, (place - 1) / 64
order by host_hash, depth, min(discovered_at), min(place);

delete from frontier_url where state = 'held';
drop index frontier_url_held;
alter table frontier_url
  drop constraint frontier_url_state_check,
  add constraint frontier_url_state_check check (state in ('due', 'refused', 'gone')) not valid;

-- Down Migration

alter table frontier_url
  drop constraint frontier_url_state_check,
  add constraint frontier_url_state_check check (state in ('due', 'refused', 'gone', 'held')) not valid;
create index frontier_url_held on frontier_url (host_hash, depth, discovered_at) where state = 'held';
insert into frontier_url (host_hash, url_hash, url, state, depth, redirects, lists, back_links, discovered_at, next_fetch_at)
select host_hash, url_hash, url, 'held', depth, redirects, lists, back_links, discovered_at, discovered_at
from held_url
on conflict (host_hash, url_hash) do nothing;
drop view held_url;
drop table held_urls;
