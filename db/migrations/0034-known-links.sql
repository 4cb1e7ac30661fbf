-- Links to other sites that a channel's pages are known to have (SARSS section 2.1, "the digests of discovered inter-site
-- URLs"), which go with its leases, so that they need not travel in full; and what sitemaps state of pages' changes.
-- Old coordinators: run on, send no known links, and read no hints. They take what names a known link for no URL, so stop
-- them before leases that have known links end with them.
-- Up Migration

create table channel_link (
  channel_id integer not null references channel on delete cascade,
  to_host_hash bigint not null,
  to_url_hash bigint not null,
  page_share real not null,                  -- of the channel's pages, as many link to it
  url_length smallint not null,              -- characters
  turn integer not null,                     -- known_turn of the channel when it was last counted
  primary key (channel_id, to_host_hash, to_url_hash)
);
alter table channel
  -- Share of compared visits of its pages that found a change: what a known page's visit will ship.
  add column changed_share real not null default 0;

alter table frontier_url
  add column stated_frequency smallint,      -- changefreq of its sitemap: 0 always to 6 never; null: none stated
  add column stated_modified_day smallint;   -- lastmod of its sitemap or feed, days since 2000-01-01; null: none stated

-- Down Migration
