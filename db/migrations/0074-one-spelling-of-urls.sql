-- URLs whose percent-encoded octets had another spelling than the one of RFC 3986 section 6.2.2 (%7E for ~, %d0 for %D0) get
-- their one key. Where both spellings are there, they become one URL with the visits, fetches, links and changes of both. Old
-- coordinators would go on making the old keys. Decision 0033. Pages whose text was not composed yet are read anew.
-- needs: all coordinators stopped
-- Up Migration

-- As coordinator/core/ip/url-escapes.ts.
create function canonical_escapes(written text) returns text language sql immutable strict parallel safe
return (
  select coalesce(string_agg(
    case
      when length(part) < 3 or left(part, 1) <> '%' then part
      when is_behind_stray or strpos('ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~', sign) = 0
        then upper(part)
      else sign
    end, '' order by place), '')
  from (
    select part, place,
      coalesce(lag(part) over (order by place) ~ '^%[0-9A-Fa-f]?$', false) as is_behind_stray,
      -- Of an octet that is a sign of ASCII; # is none of those that stand for themselves.
      case when part ~ '^%[2-7]' and length(part) = 3 then chr(get_byte(decode(substr(part, 2), 'hex'), 0)) else '#' end as sign
    from regexp_matches(written, '%[0-9A-Fa-f]{2}|%[0-9A-Fa-f]?|[^%]+', 'g') with ordinality as found (parts, place)
    cross join lateral (select parts[1] as part) one
  ) signs
);

-- As core/url-key.ts.
create function pg_temp.hash_of(url text) returns bigint language sql immutable strict
return ('x' || encode(substring(sha256(convert_to(url, 'UTF8')) for 8), 'hex'))::bit(64)::bigint;

-- An octet that may have another spelling; most texts have none, which is told before they are taken apart.
create function pg_temp.may_differ(url text) returns boolean language sql immutable strict
return url ~ '%([0-9A-Fa-f]?[a-f]|2[DE]|3[0-9]|4[1-9A-F]|5[0-9AF]|6[1-9A-F]|7[0-9AE])';

-- Of so many URLs of a worth those that go when one stays.
create function pg_temp.gone_of(worth text, worths text[], kept text) returns integer language sql immutable
return cardinality(array_positions(worths, worth)) - (worth is not distinct from kept)::int;

-- What results do to other hosts, taken apart (frontier/link-outbox.ts): for some URLs the only text that there is.
create function pg_temp.long_at(packed bytea, at integer) returns bigint language sql immutable
return ('x' || encode(substring(packed from at + 1 for 8), 'hex'))::bit(64)::bigint;

create temporary table waiting on commit drop as
select outbox_number, nth, host_hash, url_hash, links, depth, redirects, lists, depth <> '\xffff' as is_named,
  substring(packed from 6 + 26 * effects + ends - length for length) as url
from (
  select *, sum(length) over (partition by outbox_number order by nth)::integer as ends
  from (
    select o.outbox_number, nth, o.packed, o.effects,
      pg_temp.long_at(o.packed, 5 + 8 * nth) as host_hash,
      pg_temp.long_at(o.packed, 5 + 8 * o.effects + 8 * nth) as url_hash,
      substring(o.packed from 6 + 16 * o.effects + 4 * nth for 4) as links,
      substring(o.packed from 6 + 20 * o.effects + 2 * nth for 2) as depth,
      substring(o.packed from 6 + 22 * o.effects + nth for 1) as redirects,
      substring(o.packed from 6 + 23 * o.effects + nth for 1) as lists,
      256 * get_byte(o.packed, 5 + 24 * o.effects + 2 * nth) + get_byte(o.packed, 6 + 24 * o.effects + 2 * nth) as length
    from link_outbox o
    cross join lateral generate_series(0, o.effects - 1) as nth
  ) columns_of
) lengths_of;

-- URLs with another key from now on, wherever their text stands.
create temporary table respelled on commit drop as
select host_hash, old_hash, pg_temp.hash_of(url) as new_hash, url
from (
  select host_hash, url_hash as old_hash, url as old_url, canonical_escapes(url) as url
  from (
    select distinct on (host_hash, url_hash) host_hash, url_hash, url
    from (
      select host_hash, url_hash, url from frontier_url where pg_temp.may_differ(url)
      union all select host_hash, url_hash, url from held_url where pg_temp.may_differ(url)
      union all select host_hash, url_hash, url from page where pg_temp.may_differ(url)
      union all select host_hash, url_hash, url from foreign_url where pg_temp.may_differ(url)
      union all select host_hash, url_hash, url from double_check where pg_temp.may_differ(url)
      union all select host_hash, url_hash, url from page_change where pg_temp.may_differ(url)
      union all select host_hash, url_hash, url from page_change_inbox where pg_temp.may_differ(url)
      union all select host_hash, url_hash, url from submission_url where url_hash is not null and pg_temp.may_differ(url)
      union all select host_hash, url_hash, text from waiting, convert_from(url, 'UTF8') as text where pg_temp.may_differ(text)
    ) written
    order by host_hash, url_hash
  ) each_once
) spelled
where url <> old_url;
create unique index on respelled (old_hash, host_hash) include (new_hash);
create index on respelled (host_hash, new_hash);

-- All spellings that share such a key, the canonical one included.
create temporary table spelling on commit drop as
select host_hash, old_hash, new_hash, url from respelled
union
select host_hash, new_hash, new_hash, url from respelled;
create unique index on spelling (host_hash, old_hash);
analyze respelled;
analyze spelling;

-- What a URL is from now on is what its latest page says, else its latest fetch, else its canonical spelling.
create temporary table member on commit drop as
select s.host_hash, s.old_hash, s.new_hash, s.url, p.url_hash is not null as has_page,
  row_number() over (
    partition by s.host_hash, s.new_hash
    order by p.fetched_at desc nulls last, u.last_fetched_at desc nulls last, s.old_hash <> s.new_hash, s.old_hash
  ) as place
from spelling s
left join frontier_url u on u.host_hash = s.host_hash and u.url_hash = s.old_hash
left join page p on p.host_hash = s.host_hash and p.url_hash = s.old_hash
where u.url_hash is not null or p.url_hash is not null;
analyze member;

-- Frontier: counts are summed. A spelling that waits may wait for the other's answer.
create temporary table merged_url on commit drop as
select m.host_hash, m.new_hash, m.url,
  (array_agg(m.old_hash order by m.place))[1] as leading_hash, count(*)::int as members,
  count(*) filter (where u.visits > 0)::int as visited, bool_or(u.state = 'due') as is_due,
  (array_agg(u.state order by m.place))[1] as leading_state, min(u.next_fetch_at) filter (where u.state = 'due') as due_at,
  min(u.depth) as depth, min(u.redirects) as redirects, min(u.lists) as lists, min(u.discovered_at) as discovered_at,
  least(2147483647, sum(u.back_links::bigint))::int as back_links, least(2147483647, sum(u.visits::bigint))::int as visits,
  sum(u.compared_visits)::int as compared_visits, sum(u.content_changes)::int as content_changes,
  sum(u.changed_seconds) as changed_seconds, sum(u.unchanged_seconds) as unchanged_seconds,
  (array_agg(u.changes_per_day order by m.place) filter (where u.changes_per_day is not null))[1] as changes_per_day,
  (array_agg(u.stated_frequency order by m.place) filter (where u.stated_frequency is not null))[1] as stated_frequency,
  max(u.stated_modified_day) as stated_modified_day,
  (array_agg(u.worth order by m.place))[1] as leading_worth, array_agg(u.worth) as worths
from member m
join frontier_url u on u.host_hash = m.host_hash and u.url_hash = m.old_hash
group by m.host_hash, m.new_hash, m.url;
analyze merged_url;

delete from frontier_url u
using member m
join merged_url g on g.host_hash = m.host_hash and g.new_hash = m.new_hash
where u.host_hash = m.host_hash and u.url_hash = m.old_hash and m.old_hash <> g.leading_hash;

update frontier_url u
set url_hash = g.new_hash, url = g.url, depth = g.depth, redirects = g.redirects, lists = g.lists,
  discovered_at = g.discovered_at, back_links = g.back_links, visits = g.visits, compared_visits = g.compared_visits,
  content_changes = g.content_changes, changed_seconds = g.changed_seconds, unchanged_seconds = g.unchanged_seconds,
  changes_per_day = g.changes_per_day, stated_frequency = g.stated_frequency, stated_modified_day = g.stated_modified_day,
  state = case when g.is_due then 'due' else u.state end,
  next_fetch_at = case when g.is_due and g.leading_state <> 'due' then g.due_at else u.next_fetch_at end
from merged_url g
where u.host_hash = g.host_hash and u.url_hash = g.leading_hash;

update frontier_host h
set url_count = h.url_count - less.urls, fetched_urls = h.fetched_urls - less.visited,
  good_pages = h.good_pages - less.good, near_duplicates = h.near_duplicates - less.near,
  not_found_pages = h.not_found_pages - less.missing, empty_pages = h.empty_pages - less.empty,
  failed_urls = h.failed_urls - less.failed
from (
  select host_hash, sum(members - 1) as urls, sum(greatest(0, visited - 1)) as visited,
    sum(pg_temp.gone_of('good', worths, leading_worth)) as good, sum(pg_temp.gone_of('near-duplicate', worths, leading_worth)) as near,
    sum(pg_temp.gone_of('not-found', worths, leading_worth)) as missing, sum(pg_temp.gone_of('empty', worths, leading_worth)) as empty,
    sum(pg_temp.gone_of('failed', worths, leading_worth)) as failed
  from merged_url
  where members > 1
  group by host_hash
) less
where h.host_hash = less.host_hash;

-- URLs over their hosts' budgets: each once, and not where the frontier has it.
create temporary table held_again on commit drop as
with batches as (
  select distinct b.host_hash, b.batch
  from held_url b
  join spelling s on s.host_hash = b.host_hash and s.old_hash = b.url_hash
), waiting as (
  select b.host_hash, b.batch, b.place, b.back_links, coalesce(s.new_hash, b.url_hash) as url_hash, coalesce(s.url, b.url) as url,
    b.depth, s.new_hash is not null and u.url_hash is not null as is_known
  from batches
  join held_url b using (host_hash, batch)
  left join spelling s on s.host_hash = b.host_hash and s.old_hash = b.url_hash
  left join frontier_url u on u.host_hash = b.host_hash and u.url_hash = s.new_hash
)
select w.*,
  row_number() over (partition by host_hash, url_hash order by depth, batch, place) as nth,
  sum(back_links::bigint) over (partition by host_hash, url_hash) as all_links
from waiting w;

update frontier_url u
set back_links = least(2147483647, u.back_links + h.all_links)
from held_again h
where h.is_known and h.nth = 1 and u.host_hash = h.host_hash and u.url_hash = h.url_hash;

update frontier_host h
set held_urls = h.held_urls - less.urls
from (select host_hash, count(*) as urls from held_again where is_known or nth > 1 group by host_hash) less
where h.host_hash = less.host_hash;

with kept as (
  select host_hash, batch,
    array_agg(url_hash order by place) filter (where not is_known and nth = 1) as url_hashes,
    array_agg(least(2147483647, all_links)::int order by place) filter (where not is_known and nth = 1) as links,
    string_agg(url, e'\n' order by place) filter (where not is_known and nth = 1) as urls
  from held_again
  group by host_hash, batch
), emptied as (
  delete from held_urls b using kept k where b.host_hash = k.host_hash and b.batch = k.batch and k.url_hashes is null
)
update held_urls b
set released = 0, url_hashes = k.url_hashes, links = k.links, urls = k.urls
from kept k
where b.host_hash = k.host_hash and b.batch = k.batch and k.url_hashes is not null;

-- The index: the latest page stays, and whatever was a copy of a spelling is one of the page.
create temporary table merged_page on commit drop as
select host_hash, old_hash, new_hash, url, place = 1 as stays from member where has_page;
analyze merged_page;

delete from page p
using merged_page m
where p.host_hash = m.host_hash and p.url_hash = m.old_hash and not m.stays;

update page p
set url_hash = m.new_hash, url = m.url
from merged_page m
where p.host_hash = m.host_hash and p.url_hash = m.old_hash and m.stays and m.old_hash <> m.new_hash;

update page p
set duplicate_url_hash = r.new_hash
from respelled r
where p.duplicate_host_hash = r.host_hash and p.duplicate_url_hash = r.old_hash;

update page
set duplicate_host_hash = null, duplicate_url_hash = null
where duplicate_host_hash = host_hash and duplicate_url_hash = url_hash;

update page set canonical_url = canonical_escapes(canonical_url) where pg_temp.may_differ(canonical_url);

-- The text of the page that stays is compared with others'; another page stands for a group that has lost its own
-- (results/near-text-store.ts).
create temporary table lost_text on commit drop as
select distinct b.text_group
from merged_page m
join text_band b on b.host_hash = m.host_hash and b.url_hash = m.old_hash
where not m.stays;

delete from text_band b
using merged_page m
where b.host_hash = m.host_hash and b.url_hash = m.old_hash and not m.stays;

update text_band b
set url_hash = m.new_hash
from merged_page m
where b.host_hash = m.host_hash and b.url_hash = m.old_hash and m.stays and m.old_hash <> m.new_hash;

insert into text_band (band, host_hash, url_hash, simhash, words, text_group)
select ((1 + floor(ln(heir.words) / -ln(0.8::float8))::integer) * 4 + nth) * 65536
    + ('x' || lpad(substr(heir.simhash, 4 * nth + 1, 4), 8, '0'))::bit(32)::integer,
  heir.host_hash, heir.url_hash, ('x' || heir.simhash)::bit(64)::bigint, heir.words, heir.text_group
from (
  select distinct on (text_group) p.host_hash, p.url_hash, p.simhash, p.words, text_group
  from lost_text
  join page p using (text_group)
  where not exists (select from text_band b where b.text_group = lost_text.text_group)
  order by text_group, p.duplicate_url_hash is not null, p.host_hash, p.url_hash
) heir
cross join generate_series(0, 3) as nth;

-- Links. A page's row is rebuilt where it leads to another spelling than the one: each URL once, none to itself.
create temporary table relinked on commit drop as
with rows as (
  select o.host_hash, o.url_hash
  from out_link o
  cross join lateral unnest(o.urls) as target (url_hash)
  join respelled r on r.old_hash = target.url_hash
  union
  select o.host_hash, o.url_hash
  from out_link o
  join respelled r on r.host_hash = o.host_hash and r.old_hash = o.url_hash
), links as (
  select o.host_hash, o.url_hash, o.hosts, t.ordinal, t.place, t.url as old_target, coalesce(t.anchor, '') as anchor,
    coalesce(t.ordinal = any (o.nofollows), false) as is_nofollow,
    coalesce(r.new_hash, t.url) as target, coalesce(own.new_hash, o.url_hash) as page,
    case when t.place is null then o.host_hash else o.hosts[t.place] end as target_host
  from rows
  join out_link o using (host_hash, url_hash)
  cross join lateral unnest(
    o.urls, array_fill(null::smallint, array[o.own_links::int]) || o.places, string_to_array(o.anchors, e'\n')
  ) with ordinality as t (url, place, anchor, ordinal)
  left join respelled r on r.old_hash = t.url
    and r.host_hash = case when t.place is null then o.host_hash else o.hosts[t.place] end
  left join respelled own on own.host_hash = o.host_hash and own.old_hash = o.url_hash
)
select *,
  target = page and target_host = host_hash
    or row_number() over (partition by host_hash, url_hash, target order by is_nofollow, ordinal) > 1 as goes
from links;

-- Earlier visits' links are packed as bits (core/link-set), each as its difference to the visit after it. They are taken apart
-- where something in them has another key, and packed again: a difference has to leave out what both visits have by now.
create function pg_temp.number_at(bits varbit, at integer, width integer) returns bigint language sql immutable
return lpad(substring(bits from at + 1 for width)::text, 64, '0')::bit(64)::bigint;

create function pg_temp.bigint_of(unsigned numeric) returns bigint language sql immutable
return (case when unsigned >= 9223372036854775808 then unsigned - 18446744073709551616 else unsigned end)::bigint;

create function pg_temp.unsigned_of(signed bigint) returns numeric language sql immutable
return case when signed < 0 then signed + 18446744073709551616 else signed end;

-- List 0: what the visit has (mark 1: all; mark 2: beyond the one after it); list 1: what it has not.
create function pg_temp.unpacked_links(packed bytea)
returns table (list integer, host_hash bigint, url_hash bigint) language plpgsql immutable as $$
declare
  least_hash constant bigint := -9223372036854775808;
  bits varbit := ('x' || encode(packed, 'hex'))::text::varbit;
  at integer := 8;
  counts integer[];
  hosts bigint[];
  width integer;
  -- Without a sign, less 2^63, so that it fits.
  hash bigint;
  step bigint;
  count integer;
  shift integer;
begin
  for list in 0 .. get_byte(packed, 0) - 1 loop
    counts := '{}';
    hosts := '{}';
    -- The count of hosts, then that of each one's URLs, in groups of seven bits; the hosts' hashes are between the two.
    loop
      count := 0;
      shift := 0;
      loop
        count := count + ((pg_temp.number_at(bits, at, 8)::integer & 127) << shift);
        shift := shift + 7;
        at := at + 8;
        exit when get_bit(bits, at - 8) = 0;
      end loop;
      counts := counts || count;
      if cardinality(counts) = 1 and count > 0 then
        width := pg_temp.number_at(bits, at, 6) + 1;
        at := at + 6;
        hash := least_hash;
        for host in 1 .. count loop
          step := pg_temp.number_at(bits, at, width);
          hash := hash + (step & 9223372036854775807);
          if step < 0 then hash := hash + 9223372036854775807 + 1; end if;
          at := at + width;
          hosts := hosts || (hash # least_hash);
        end loop;
      end if;
      exit when cardinality(counts) = counts[1] + 1;
    end loop;
    for host in 1 .. counts[1] loop
      continue when counts[host + 1] = 0;
      width := pg_temp.number_at(bits, at, 6) + 1;
      at := at + 6;
      hash := least_hash;
      for url in 1 .. counts[host + 1] loop
        step := pg_temp.number_at(bits, at, width);
        hash := hash + (step & 9223372036854775807);
        if step < 0 then hash := hash + 9223372036854775807 + 1; end if;
        at := at + width;
        unpacked_links.list := list;
        unpacked_links.host_hash := hosts[host];
        unpacked_links.url_hash := hash # least_hash;
        return next;
      end loop;
    end loop;
  end loop;
end $$;

create function pg_temp.bits_of(value numeric, width integer) returns text language sql immutable
return right(pg_temp.bigint_of(value)::bit(64)::text, width);

create function pg_temp.count_bits(count integer) returns text language sql immutable
return case when count > 127 then (128 | (count & 127))::bit(8)::text || case
    when count >> 7 > 127 then (128 | (count >> 7 & 127))::bit(8)::text || (count >> 14)::bit(8)::text
    else (count >> 7)::bit(8)::text end
  else count::bit(8)::text end;

create function pg_temp.hash_bits(hashes bigint[]) returns text language sql immutable
return (
  with differences as (
    select nth, unsigned - lag(unsigned, 1, 0::numeric) over (order by nth) as difference
    from (
      select pg_temp.unsigned_of(hash) as unsigned, row_number() over (order by pg_temp.unsigned_of(hash)) as nth
      from unnest(hashes) as hash
    ) sorted
  ), widest as (
    select greatest(1, length(ltrim(pg_temp.bits_of(max(difference), 64), '0'))) as width from differences
  )
  select (width - 1)::bit(6)::text || string_agg(pg_temp.bits_of(difference, width), '' order by nth)
  from differences, widest
  group by width
);

-- Hosts and URLs: a pair for each link, each link once.
create function pg_temp.list_bits(hosts bigint[], urls bigint[]) returns text language sql immutable
return (
  with by_host as (
    select host, array_agg(url) as urls, row_number() over (order by pg_temp.unsigned_of(host)) as nth
    from unnest(hosts, urls) as link (host, url)
    where host is not null
    group by host
  )
  select pg_temp.count_bits(count(*)::integer)
    || coalesce(pg_temp.hash_bits(array_agg(host)), '')
    || coalesce(string_agg(pg_temp.count_bits(cardinality(by_host.urls)), '' order by nth), '')
    || coalesce(string_agg(pg_temp.hash_bits(by_host.urls), '' order by nth), '')
  from by_host
);

create function pg_temp.bytes_of(bits text) returns bytea language sql immutable
return (
  select substring(string_agg(int8send(rpad(substr(bits, from_bit, 64), 64, '0')::bit(64)::bigint), '' order by from_bit)
    for (length(bits) + 7) / 8)
  from generate_series(1, length(bits), 64) as from_bit
);

-- Of pages where a key may stand in them.
create temporary table unpacked on commit drop as
select p.host_hash, p.url_hash, p.visit, get_byte(p.adjacency, 0) = 1 as is_whole, l.list, l.host_hash as target_host, l.url_hash as target
from page_links p
left join out_link o on o.host_hash = p.host_hash and o.url_hash = p.url_hash
cross join lateral pg_temp.unpacked_links(p.adjacency) l
where p.host_hash in (select host_hash from respelled)
  or o.hosts && (select array_agg(distinct host_hash) from respelled);

-- Spellings of one page that have links: those of the first are what it links to.
create temporary table linking on commit drop as
select m.host_hash, m.old_hash, m.new_hash, o.visit,
  row_number() over (partition by m.host_hash, m.new_hash order by m.place) as place
from member m
join out_link o on o.host_hash = m.host_hash and o.url_hash = m.old_hash;

analyze unpacked;
analyze linking;
create temporary table linked_again on commit drop as
select p.host_hash, p.url_hash
from (
  select u.host_hash, u.url_hash
  from unpacked u
  join respelled r on r.host_hash = u.target_host and r.old_hash = u.target
  union
  select host_hash, url_hash from relinked
) p
where exists (select from page_links e where e.host_hash = p.host_hash and e.url_hash = p.url_hash)
  and exists (select from out_link o where o.host_hash = p.host_hash and o.url_hash = p.url_hash)
union
select l.host_hash, l.old_hash
from linking l
join linking other using (host_hash, new_hash)
where other.old_hash <> l.old_hash;

-- All links of each of their visits, the latest at level 0.
create temporary table visit_of on commit drop as
select a.host_hash, a.url_hash, v.visit, v.visited_at, v.level
from linked_again a
cross join lateral (
  select visit, visited_at, 0 as level from out_link where host_hash = a.host_hash and url_hash = a.url_hash
  union all
  select visit, visited_at, row_number() over (order by visit desc)::integer from page_links
  where host_hash = a.host_hash and url_hash = a.url_hash
) v;

analyze linked_again;
analyze visit_of;
create temporary table visit_link on commit drop as
select a.host_hash, a.url_hash, 0 as level,
  case when t.place is null then o.host_hash else o.hosts[t.place] end as target_host, t.target
from linked_again a
join out_link o using (host_hash, url_hash)
cross join lateral unnest(o.urls, array_fill(null::smallint, array[o.own_links::int]) || o.places) as t (target, place);
create index on visit_link (level, host_hash, url_hash, target);

do $$
begin
  for step in 1 .. coalesce((select max(level) from visit_of), 0) loop
    insert into visit_link (host_hash, url_hash, level, target_host, target)
    select l.host_hash, l.url_hash, step, l.target_host, l.target
    from visit_link l
    join visit_of v on v.host_hash = l.host_hash and v.url_hash = l.url_hash and v.level = step
    where l.level = step - 1
      and not exists (
        select from page_links p where p.host_hash = l.host_hash and p.url_hash = l.url_hash and p.visit = v.visit
          and get_byte(p.adjacency, 0) = 1)
      and not exists (
        select from unpacked u where u.host_hash = l.host_hash and u.url_hash = l.url_hash and u.visit = v.visit
          and u.list = 1 and u.target_host = l.target_host and u.target = l.target)
    union
    select v.host_hash, v.url_hash, step, u.target_host, u.target
    from visit_of v
    join unpacked u on u.host_hash = v.host_hash and u.url_hash = v.url_hash and u.visit = v.visit
    where v.level = step and u.list = 0;
  end loop;
end $$;

-- The visits of all spellings are visits of the one, in the order of their times; what it links to now is the last.
create temporary table visit_again on commit drop as
select v.host_hash, v.url_hash, v.level, v.visited_at, coalesce(l.new_hash, v.url_hash) as page,
  case when many.visits is null then v.visit
    else many.visits - many.kept + row_number() over (
      partition by v.host_hash, coalesce(l.new_hash, v.url_hash) order by v.level = 0 and l.place = 1, v.visited_at, v.visit)
  end as visit
from visit_of v
left join linking l on l.host_hash = v.host_hash and l.old_hash = v.url_hash
left join (
  select l.host_hash, l.new_hash, sum(v.visit) filter (where v.level = 0) as visits, count(*) as kept
  from linking l
  join visit_of v on v.host_hash = l.host_hash and v.url_hash = l.old_hash
  group by 1, 2
  having count(*) filter (where v.level = 0) > 1
) many on many.host_hash = l.host_hash and many.new_hash = l.new_hash;

analyze visit_again;
create temporary table link_again on commit drop as
select distinct v.host_hash, v.page, v.visit, l.target_host, coalesce(r.new_hash, l.target) as target
from visit_again v
join visit_link l using (host_hash, url_hash, level)
left join respelled r on r.host_hash = l.target_host and r.old_hash = l.target
where (l.target_host, coalesce(r.new_hash, l.target)) <> (v.host_hash, v.page);
create index on link_again (host_hash, page, visit, target);
analyze link_again;

analyze relinked;

create temporary table link_gone on commit drop as
select host_hash, target_host, target from relinked where goes;

with kept as (
  select *, row_number() over (partition by host_hash, url_hash order by ordinal) as nth from relinked where not goes
), lists as (
  select host_hash, url_hash, count(*) filter (where place is null) as own_links, array_agg(target order by ordinal) as urls,
    coalesce(array_agg(place order by ordinal) filter (where place is not null), '{}') as places,
    array_agg(nth::smallint order by ordinal) filter (where is_nofollow) as nofollows,
    string_agg(anchor, e'\n' order by ordinal) as anchors
  from kept
  group by host_hash, url_hash
)
update out_link o
set own_links = l.own_links, urls = l.urls, places = l.places, nofollows = l.nofollows, anchors = l.anchors
from lists l
where o.host_hash = l.host_hash and o.url_hash = l.url_hash;

update out_link o
set own_links = 0, urls = '{}', hosts = '{}', places = '{}', nofollows = null, anchors = ''
from (select host_hash, url_hash from relinked group by 1, 2 having bool_and(goes)) empty
where o.host_hash = empty.host_hash and o.url_hash = empty.url_hash;

-- As results/link-writes.ts makes it, so that a visit that finds these links finds them unchanged.
update out_link o
set digest = ('x' || encode(substring(sha256(convert_to(
    o.urls::text || o.hosts::text || o.places::text || coalesce(o.nofollows::text, 'null') || o.anchors, 'UTF8')) for 8), 'hex'))::bit(64)::bigint
from (select distinct host_hash, url_hash from relinked) changed
where o.host_hash = changed.host_hash and o.url_hash = changed.url_hash;

insert into link_gone (host_hash, target_host, target)
select l.host_hash, l.to_host_hash, l.to_url_hash
from linking g
join link l on l.host_hash = g.host_hash and l.url_hash = g.old_hash
where g.place > 1;

delete from out_link o
using linking g
where o.host_hash = g.host_hash and o.url_hash = g.old_hash and g.place > 1;

update out_link o
set url_hash = g.new_hash, visit = coalesce(v.visit, o.visit)
from linking g
left join visit_again v on v.host_hash = g.host_hash and v.url_hash = g.old_hash and v.level = 0
where o.host_hash = g.host_hash and o.url_hash = g.old_hash and g.place = 1;

delete from page_links p
using linked_again a
where p.host_hash = a.host_hash and p.url_hash = a.url_hash;

insert into page_links (host_hash, url_hash, visit, visited_at, link_count, adjacency)
select v.host_hash, v.page, v.visit, v.visited_at, links.count,
  pg_temp.bytes_of('00000010' || pg_temp.list_bits(more.hosts, more.urls) || pg_temp.list_bits(less.hosts, less.urls))
from (select *, lead(visit) over (partition by host_hash, page order by visit) as next_visit from visit_again) v
cross join lateral (
  select count(*)::integer as count from link_again l where l.host_hash = v.host_hash and l.page = v.page and l.visit = v.visit
) links
cross join lateral (
  select array_agg(l.target_host) as hosts, array_agg(l.target) as urls
  from link_again l
  where l.host_hash = v.host_hash and l.page = v.page and l.visit = v.visit
    and not exists (
      select from link_again n where n.host_hash = l.host_hash and n.page = l.page and n.visit = v.next_visit
        and n.target = l.target and n.target_host = l.target_host)
) more
cross join lateral (
  select array_agg(n.target_host) as hosts, array_agg(n.target) as urls
  from link_again n
  where n.host_hash = v.host_hash and n.page = v.page and n.visit = v.next_visit
    and not exists (
      select from link_again l where l.host_hash = n.host_hash and l.page = n.page and l.visit = v.visit
        and l.target = n.target and l.target_host = n.target_host)
) less
where v.next_visit is not null;

update page_links p
set url_hash = r.new_hash
from respelled r
where p.host_hash = r.host_hash and p.url_hash = r.old_hash;

-- What is linked to by two spellings of a page, or in two spellings, has one link less. Of other hosts that goes the way of all
-- links to them, behind those that wait still (at the end).
update frontier_url u
set back_links = greatest(0, u.back_links - f.links)
from (
  select target_host as host_hash, target as url_hash, count(*) as links
  from link_gone
  where target_host = host_hash
  group by 1, 2
) f
where u.host_hash = f.host_hash and u.url_hash = f.url_hash;

-- URLs of other coordinators: what one spelling has told stays told, and what waits waits.
create temporary table merged_foreign on commit drop as
select s.host_hash, s.new_hash, s.url,
  (array_agg(f.url_hash order by f.number nulls last, f.sent_at nulls last, s.old_hash <> s.new_hash))[1] as leading_hash,
  least(2147483647, greatest(-2147483648, sum(f.links::bigint)))::int as links, min(f.waits_since) as waits_since,
  min(f.depth) as depth, min(f.redirects) as redirects, min(f.lists) as lists, min(f.hops) as hops,
  bool_or(f.sent_at is not null or f.number is not null) as is_told
from spelling s
join foreign_url f on f.host_hash = s.host_hash and f.url_hash = s.old_hash
group by s.host_hash, s.new_hash, s.url;

delete from foreign_url f
using spelling s
join merged_foreign m on m.host_hash = s.host_hash and m.new_hash = s.new_hash
where f.host_hash = s.host_hash and f.url_hash = s.old_hash and f.url_hash <> m.leading_hash;

update foreign_url f
set url_hash = m.new_hash, url = m.url, links = m.links, depth = m.depth, redirects = m.redirects, lists = m.lists,
  hops = m.hops, waits_since = case when m.is_told and m.links = 0 then f.waits_since else m.waits_since end
from merged_foreign m
where f.host_hash = m.host_hash and f.url_hash = m.leading_hash;

-- Those that lie before the place where claims are settled have to be looked at once more.
update coordinator_self
set url_cursor_host = -9223372036854775808, url_cursor_url = -9223372036854775808
where url_cursor_host is not null;

-- Of two open comparisons of a URL the earlier one goes on.
update double_check c
set verdict = 'stale', decided_at = now(), words = 'another spelling of the URL is compared already'
from (
  select c.check_id, row_number() over (partition by s.host_hash, s.new_hash order by c.check_id) as nth
  from spelling s
  join double_check c on c.host_hash = s.host_hash and c.url_hash = s.old_hash and c.verdict is null
) open
where c.check_id = open.check_id and open.nth > 1;

-- Everything else only has its key.
update double_check c set url_hash = r.new_hash, url = r.url
from respelled r where c.host_hash = r.host_hash and c.url_hash = r.old_hash;

update page_fetch f set url_hash = r.new_hash
from respelled r where f.host_hash = r.host_hash and f.url_hash = r.old_hash;

update page_change c set url_hash = r.new_hash, url = r.url
from respelled r where c.host_hash = r.host_hash and c.url_hash = r.old_hash;

update page_change_inbox c set url_hash = r.new_hash, url = r.url
from respelled r where c.host_hash = r.host_hash and c.url_hash = r.old_hash;

update submission_url u set url_hash = r.new_hash, url = r.url
from respelled r where u.host_hash = r.host_hash and u.url_hash = r.old_hash;

create temporary table merged_rank on commit drop as
select s.host_hash, s.new_hash, sum(k.page_rank)::real as page_rank, max(k.ranked_at) as ranked_at
from spelling s
join url_rank k on k.host_hash = s.host_hash and k.url_hash = s.old_hash
group by 1, 2;

delete from url_rank k using spelling s where k.host_hash = s.host_hash and k.url_hash = s.old_hash;

insert into url_rank (host_hash, url_hash, page_rank, ranked_at) select * from merged_rank;

-- Leases: a crawler that reports both spellings has told of one URL.
update lease l
set open_url_hashes = again.hashes,
  url_count = l.url_count - (cardinality(l.open_url_hashes) - cardinality(again.hashes)),
  open_urls = l.open_urls - (cardinality(l.open_url_hashes) - cardinality(again.hashes))
from (
  select l.lease_id, array_agg(distinct coalesce(r.new_hash, one)) as hashes
  from lease l
  cross join lateral unnest(l.open_url_hashes) as one
  left join respelled r on r.host_hash = l.host_hash and r.old_hash = one
  where l.closed_at is null
  group by l.lease_id
  having bool_or(r.new_hash is not null)
) again
where l.lease_id = again.lease_id;

delete from url_shortlist s using respelled r where s.host_hash = r.host_hash;

update frontier_host h
set due_at = due.at
from (
  select h.host_hash, min(u.next_fetch_at) as at
  from (select distinct host_hash from merged_url) changed
  join frontier_host h on h.host_hash = changed.host_hash and h.due_at is not null and h.lease_id is null and h.opt_out_id is null
  left join frontier_url u on u.host_hash = h.host_hash and u.state = 'due'
  group by h.host_hash
) due
where h.host_hash = due.host_hash and h.due_at is distinct from due.at;

update channel
set directories = array(select canonical_escapes(one) from unnest(directories) with ordinality as t (one, nth) order by nth),
  seeds = array(select canonical_escapes(one) from unnest(seeds) with ordinality as t (one, nth) order by nth),
  include = array(select canonical_escapes(one) from unnest(include) with ordinality as t (one, nth) order by nth),
  exclude = array(select canonical_escapes(one) from unnest(exclude) with ordinality as t (one, nth) order by nth)
where pg_temp.may_differ(array_to_string(directories || seeds || include || exclude, ' '));

-- What results do to other hosts is packed again. Of a bite that was begun, what is done goes: its place is by the order of
-- keys, which is another one now.
create temporary table effect on commit drop as
select w.*, coalesce(r.new_hash, w.url_hash) as new_hash, coalesce(convert_to(r.url, 'UTF8'), w.url) as new_url,
  r.new_hash is not null as is_changed,
  b.reached_host is not null and (w.host_hash, w.url_hash) <= (b.reached_host, b.reached_url) as is_done
from waiting w
left join respelled r on r.host_hash = w.host_hash and r.old_hash = w.url_hash
left join link_outbox_bite b on w.outbox_number = any (b.outbox_numbers);

update link_outbox o
set effects = again.effects, packed = again.packed
from (
  select outbox_number, count(*) filter (where not is_done)::integer as effects,
    '\x01'::bytea || int4send(count(*) filter (where not is_done)::integer)
      || coalesce(string_agg(int8send(host_hash), '' order by nth) filter (where not is_done), '')
      || coalesce(string_agg(int8send(new_hash), '' order by nth) filter (where not is_done), '')
      || coalesce(string_agg(links, '' order by nth) filter (where not is_done), '')
      || coalesce(string_agg(depth, '' order by nth) filter (where not is_done), '')
      || coalesce(string_agg(redirects, '' order by nth) filter (where not is_done), '')
      || coalesce(string_agg(lists, '' order by nth) filter (where not is_done), '')
      || coalesce(string_agg(int2send(case when is_named then length(new_url) else 0 end::smallint), '' order by nth) filter (where not is_done), '')
      || coalesce(string_agg(case when is_named then new_url else '' end, '' order by nth) filter (where not is_done), '') as packed
  from effect
  group by outbox_number
  having bool_or(is_changed or is_done)
) again
where o.outbox_number = again.outbox_number;

update link_outbox_bite set reached_host = null, reached_url = null where reached_host is not null;

-- Pages that were taken in before texts were composed (NFC, protocol/composed) are not found by the ordinary spelling. Without
-- validators their next fetch reads them anew, whether they have changed or not.
do $$
begin
  if getdatabaseencoding() = 'UTF8' then
    update frontier_url u
    set etag = null, last_modified = null, digest = null
    from page p
    where u.host_hash = p.host_hash and u.url_hash = p.url_hash
      and (p.title || ' ' || p.description || ' ' || p.excerpt) is not nfc normalized;
  end if;
end $$;

insert into link_outbox (crawler_id, effects, packed)
select coalesce((select min(crawler_id) from crawler), 1), count(*),
  '\x01'::bytea || int4send(count(*)::integer) || string_agg(int8send(target_host), '' order by nth)
    || string_agg(int8send(target), '' order by nth) || string_agg(int4send(-links), '' order by nth)
    || string_agg('\xffff'::bytea, '' order by nth)
    || decode(repeat('00', 4 * count(*)::integer), 'hex')
from (
  select target_host, target, count(*)::integer as links, row_number() over (order by target_host, target) as nth
  from link_gone
  where target_host <> host_hash
  group by target_host, target
) less
group by nth / 10000
order by nth / 10000;

-- Down Migration

-- Keys stay as they are: which spelling a page was found under is not kept.
drop function canonical_escapes;
