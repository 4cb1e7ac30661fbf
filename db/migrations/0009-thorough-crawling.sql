-- What polite and thorough crawlers report beyond the page: a host's robots.txt, pace and connection, redirects
-- and sitemaps, what its pages are worth (and so how many of it are crawled), and which texts are nearly the same.
-- Old coordinators: run on. They admit URLs as before, up to the operator's limit, leave held ones held, and the
-- pages they store are compared with others from the next change on.
-- Up Migration

alter table frontier_url
  -- 'held': over the host's budget for the time being.
  drop constraint frontier_url_state_check,
  add constraint frontier_url_state_check check (state in ('due', 'leased', 'refused', 'gone', 'held')),
  add column redirects smallint not null default 0,     -- in a row that led here
  add column lists smallint not null default 0,         -- sitemaps and feeds in a row that led here
  add column digest bytea,                              -- SHA-256 of the body last read: a validator beside etag
  -- What the URL counts for in its host's budget (frontier/page-worth); null: for nothing.
  add column worth text;
create index frontier_url_held on frontier_url (host_hash, depth, discovered_at) where state = 'held';

update frontier_url u
set digest = decode(p.digest, 'hex'), worth = 'good'
from page p
where p.host_hash = u.host_hash and p.url_hash = u.url_hash;

alter table frontier_host
  add column robots_state text,              -- rules, none, closed, unreachable; null: nobody has told
  add column robots_at timestamptz,
  -- Politeness, as the last crawler left it; null: nobody has told.
  add column crawl_delay_ms integer,
  add column back_off_ms integer,
  add column backed_off_at timestamptz,
  add column usual_ms integer,
  add column http_version text,              -- how it was spoken to last
  add column tls_version text,
  -- The budget: URLs held back, those named as sitemaps or feeds, links from other hosts, and what became of the rest.
  add column held_urls integer not null default 0,
  add column list_urls integer not null default 0,
  add column outside_links integer not null default 0,
  add column good_pages integer not null default 0,
  add column near_duplicates integer not null default 0,
  add column not_found_pages integer not null default 0,
  add column empty_pages integer not null default 0,
  add column failed_urls integer not null default 0,
  add column trapped_links integer not null default 0;

update frontier_host h
set good_pages = p.pages
from (select host_hash, count(*) as pages from page group by host_hash) p
where p.host_hash = h.host_hash;

alter table page
  add column declared_language text,
  add column detected_language text,
  add column published_at timestamptz,
  add column modified_at timestamptz,
  add column structured jsonb,               -- {type, name, description}
  -- Pages whose texts are nearly the same have one group; null: too short to tell.
  add column text_group bigint,
  -- The page that had this text before; null: this one was the first.
  add column duplicate_host_hash bigint,
  add column duplicate_url_hash bigint;
create index page_duplicate on page (text_group) where duplicate_url_hash is not null;

-- One page of each group, four rows each: two simhashes that differ in at most three bits have at least one of
-- their four bands of 16 bits in common. Keyed and partitioned by length and band, which is what is looked up.
create table text_band (
  band integer not null,                     -- (length * 4 + number of the band) * 65536 + its 16 bits
  host_hash bigint not null,
  url_hash bigint not null,
  simhash bigint not null,
  words integer not null,
  text_group bigint not null,
  primary key (band, host_hash, url_hash)
) partition by hash (band);

do $$
begin
  for part in 0..7 loop
    execute format('create table text_band_%s partition of text_band for values with (modulus 8, remainder %s)', part, part);
  end loop;
end $$;

-- Down Migration
