-- Coordinators under coordinators (WEB-SAILOR section 4.4): who is above and below, what each owns, and the URLs that
-- belong to others, with the numbers that make what is sent twice count once.
-- Old coordinators: run on, alone; they keep what they find in their own frontier.
-- Up Migration

-- Made at the first start, not here: copies of a migrated database must not take each other for themselves.
create table coordinator_self (
  only_one boolean primary key default true check (only_one),
  coordinator_id uuid not null,
  -- The claims by which the frontier and foreign_url were last gone through, and how far that has come; null: done.
  settled_claims text,
  host_cursor bigint,
  url_cursor_host bigint,
  url_cursor_url bigint
);

-- The parent is number 0, children have the others. Each direction has numbers of its own, as the spool of a crawler.
create table related_coordinator (
  peer_id integer primary key,
  name text not null unique,                 -- of the parent: its address
  key_hash text unique,                      -- SHA-256 of the child's key, hex; null: the parent
  created_at timestamptz not null,
  created_by text not null,
  coordinator_id uuid unique,                -- null: it has not spoken yet
  -- Of a child: what it owns. Of the parent: what this coordinator owns.
  claims text[] not null default '{}',
  chain uuid[] not null default '{}',        -- of the parent: itself and those above it
  link_id uuid,                              -- made by the upper one; numbers begin anew with another
  sent_number bigint not null default 0,     -- the highest given to a URL for it
  received_number bigint not null default 0, -- the highest of its own that is committed here
  contacted_at timestamptz,
  failing_since timestamptz,
  failure text,                              -- why it is not reached, or refused, in words
  exchanges bigint not null default 0,
  urls_sent bigint not null default 0,
  urls_received bigint not null default 0,
  urls_dropped bigint not null default 0,
  dropped_at timestamptz,
  check ((peer_id = 0) = (key_hash is null))
);
create sequence related_coordinator_number as integer start with 1;

-- URLs of others that this coordinator has found or passes on. A row is a URL that waits to be told, is under way, or
-- was told: what comes to be known of it later (links that came or went) is sent as a difference. Bounded in rows.
create table foreign_url (
  host_hash bigint not null,
  url_hash bigint not null,
  url text collate "C" not null,
  peer_id integer not null,
  depth smallint not null default 0,
  redirects smallint not null default 0,
  lists smallint not null default 0,
  hops smallint not null default 0,          -- coordinators that it has passed
  links integer not null default 0,          -- came less went, not told yet
  waits_since timestamptz,                   -- null: there is nothing to tell
  number bigint,                             -- under way; null: it is not
  sent_links integer not null default 0,     -- of what is under way
  sent_at timestamptz,                       -- when it was acknowledged last
  primary key (host_hash, url_hash)
);
create index foreign_url_waits on foreign_url (peer_id, waits_since, host_hash, url_hash)
  where waits_since is not null and number is null;
create index foreign_url_under_way on foreign_url (peer_id, number) where number is not null;
create index foreign_url_told on foreign_url (sent_at) where waits_since is null and number is null;

-- Its parent gave the host to this coordinator, by an address that is looked up elsewhere otherwise.
alter table frontier_host add column given boolean not null default false;

-- Down Migration
