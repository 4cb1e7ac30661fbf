-- The links of a page as one packed row, in place of a row and two index entries for each link: a page of the web has a
-- hundred, which took 40 of the 135 KB of log and 20 of the 61 KB of disk that taking it in cost. Its latest links stand
-- there once: page_links keeps what the visits before it differ by. What reads links one by one finds them in a view
-- under the old name; who links to a page is looked up in an index of the links to other hosts.
-- Old coordinators: stop them first. They write rows of links. The links of all pages are written anew once.
-- Up Migration

create table out_link (
  host_hash bigint not null,                 -- of the page
  url_hash bigint not null,
  visit integer not null,                    -- that found other links than the one before; page_links has earlier ones
  visited_at timestamptz not null,
  digest bigint not null,                    -- of all that follows, so that a visit is compared without reading it
  own_links smallint not null,               -- so many of `urls`, the first ones, are of the page's own host
  urls bigint[] not null,                    -- what it links to, each URL once
  hosts bigint[] not null,                   -- other hosts, each once
  places smallint[] not null,                -- of the URLs beyond the own ones: where in `hosts` theirs stands, from 1
  nofollows smallint[],                      -- where in `urls`, from 1; null: none
  anchors text not null,                     -- a line for each URL
  primary key (host_hash, url_hash)
) partition by hash (host_hash);

-- In the row as long as it fits into a page, compressed from 2 KB on: apart from it, a page's links take three rows more.
alter table out_link
  alter column urls set storage main,
  alter column hosts set storage main,
  alter column places set storage main,
  alter column nofollows set storage main,
  alter column anchors set storage main;
do $$
begin
  alter table out_link alter column anchors set compression lz4;
exception when feature_not_supported then
  null;
end $$;

do $$
begin
  for part in 0..7 loop
    execute format('create table out_link_%s partition of out_link for values with (modulus 8, remainder %s)', part, part);
  end loop;
end $$;

insert into out_link (host_hash, url_hash, visit, visited_at, digest, own_links, urls, hosts, places, nofollows, anchors)
select l.host_hash, l.url_hash,
  case when k.link_count = l.links then k.visit else greatest(coalesce(u.visits, 1), coalesce(k.visit, 0) + 1) end,
  coalesce(case when k.link_count = l.links then k.visited_at end, u.last_fetched_at, now()),
  -- No digest of ours: the next visit reads the row, and writes one.
  0,
  l.own_links, l.urls, coalesce(l.hosts, '{}'), coalesce(l.places, '{}'), l.nofollows, l.anchors
from (
  select host_hash, url_hash, count(*) as links, count(*) filter (where host_place = 0) as own_links,
    array_agg(to_url_hash order by ordinal) as urls,
    array_agg(to_host_hash order by host_place) filter (where is_first_of_host and host_place > 0) as hosts,
    array_agg(host_place::smallint order by ordinal) filter (where host_place > 0) as places,
    array_agg(ordinal::smallint order by ordinal) filter (where nofollow) as nofollows,
    string_agg(translate(anchor, e'\n\r', '  '), e'\n' order by ordinal) as anchors
  from (
    select one.*,
      row_number() over (partition by host_hash, url_hash order by host_place, to_url_hash) as ordinal,
      row_number() over (partition by host_hash, url_hash, to_host_hash order by to_url_hash) = 1 as is_first_of_host
    from (
      select link.*, dense_rank() over (
          partition by host_hash, url_hash
          order by to_host_hash <> host_hash, case when to_host_hash <> host_hash then to_host_hash end
        ) - case when bool_or(to_host_hash = host_hash) over (partition by host_hash, url_hash) then 1 else 0 end
        as host_place
      from link
    ) one
  ) placed
  group by host_hash, url_hash
) l
left join frontier_url u on u.host_hash = l.host_hash and u.url_hash = l.url_hash
left join lateral (
  select p.visit, p.visited_at, p.link_count
  from page_links p
  where p.host_hash = l.host_hash and p.url_hash = l.url_hash
  order by p.visit desc
  limit 1
) k on true;

-- Pages that had no link when they were last seen.
insert into out_link (host_hash, url_hash, visit, visited_at, digest, own_links, urls, hosts, places, nofollows, anchors)
select p.host_hash, p.url_hash, p.visit, p.visited_at, 0, 0, '{}', '{}', '{}', null, ''
from page_links p
where p.link_count = 0
  and not exists (
    select from page_links later
    where later.host_hash = p.host_hash and later.url_hash = p.url_hash and later.visit > p.visit
  )
on conflict do nothing;

-- The latest visit is in out_link; where a page has no links there (its site opted out), the others are of no use.
delete from page_links p
using out_link o
where o.host_hash = p.host_hash and o.url_hash = p.url_hash and o.visit = p.visit;
delete from page_links p
where not exists (select from out_link o where o.host_hash = p.host_hash and o.url_hash = p.url_hash);

drop table link;

-- Who links to a page: by the URLs of other hosts. Pages of its own host are looked through.
create index out_link_to on out_link using gin ((urls[own_links + 1:]));

-- A row for each link.
create view link as
select o.host_hash, o.url_hash,
  case when t.place is null then o.host_hash else o.hosts[t.place] end as to_host_hash,
  t.to_url_hash, coalesce(t.anchor, '') as anchor, coalesce(t.ordinal = any (o.nofollows), false) as nofollow
from out_link o
cross join lateral unnest(
  o.urls,
  array_fill(null::smallint, array[o.own_links::int]) || o.places,
  string_to_array(o.anchors, e'\n')
) with ordinality as t (to_url_hash, place, anchor, ordinal);

-- Down Migration
