-- What a channel's crawl knows already (SARSS section 2.1): its pages' digests, which go with its leases, so that a text
-- that is known under another URL does not travel.
-- Old coordinators: run on, and send none.
-- Up Migration

alter table channel
  -- Digests of its latest pages, hex; the coordinator packs them (protocol/known-digests).
  add column known_digests text[] not null default '{}',
  -- Counts how often they were read: sets of different turns err on different digests.
  add column known_turn integer not null default 0,
  -- Share of its pages whose body another of its pages has, too.
  add column duplicate_share real not null default 0;
-- 20 bytes a page: a page that is said to be known is looked up by its digest.
create index page_digest on page using hash (digest);

-- Down Migration
