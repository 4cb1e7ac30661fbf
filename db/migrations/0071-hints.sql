-- What sites and their hubs tell of changes (coordinator/hints): IndexNow's URLs and keys, and WebSub's subscriptions.
-- Old coordinators: they run on beside new ones, and neither take hints nor subscribe.
-- needs: nothing

-- Up Migration

-- What came of the hints of a host that the frontier holds, by source; no other host has a row.
create table hint_host (
  host_hash bigint not null,
  source text not null check (source in ('indexnow', 'websub')),
  host text collate "C" not null,
  -- Since ever: URLs named, hints that moved a fetch, what their fetches found, and URLs that were left out.
  received bigint not null default 0,
  taken bigint not null default 0,
  right_hints bigint not null default 0,
  wrong_hints bigint not null default 0,
  dropped bigint not null default 0,
  -- The same of late, from which follows how far the host is heard (hints/hint.ts).
  recent_right real not null default 0,
  recent_wrong real not null default 0,
  -- Of the day (UTC): hints taken, and keys that began to be checked.
  day date not null,
  day_taken integer not null default 0,
  day_keys smallint not null default 0,
  last_at timestamptz not null,
  primary key (host_hash, source)
);
create index hint_host_last on hint_host (last_at desc);

-- A key of IndexNow and the file that has to state it.
create table hint_key (
  key_id bigint primary key generated always as identity,
  host_hash bigint not null,
  key text collate "C" not null,
  location text collate "C" not null,        -- of its file, canonical; a URL of the frontier
  url_hash bigint not null,
  scope text collate "C" not null,           -- what it speaks for: //host/folder/, of both schemes
  state text not null check (state in ('pending', 'good', 'wrong')),
  words text not null default '',            -- why it is wrong
  asked_at timestamptz not null,             -- when it was first named, or named again after it was wrong
  checked_at timestamptz,
  seen_visits integer not null default 0,    -- visits of its file that were looked at
  unique (host_hash, url_hash, key)
);
create index hint_key_pending on hint_key (asked_at) where state = 'pending';

-- A URL that is said to have changed, until a fetch has shown whether it had.
create table hint (
  host_hash bigint not null,
  url_hash bigint not null,
  source text not null check (source in ('indexnow', 'websub')),
  url text collate "C" not null,
  key_id bigint references hint_key on delete cascade,   -- null: it needs none
  received_at timestamptz not null,
  taken_at timestamptz,                      -- null: it waits
  -- As the URL was then; null: it was not known, or never fetched.
  was_visits integer,
  was_outcome text,
  was_digest bytea,
  primary key (host_hash, url_hash)
);
create index hint_waiting on hint (received_at) where taken_at is null;
create index hint_taken on hint (taken_at) where taken_at is not null;
create index hint_of_key on hint (key_id) where key_id is not null;

-- Feeds that name a hub, and what became of subscribing to them.
create table websub_subscription (
  host_hash bigint not null,                 -- of the feed, as the frontier has it
  url_hash bigint not null,
  host text collate "C" not null,
  feed text collate "C" not null,
  topic text collate "C" not null,           -- the feed's own address for itself
  hub text collate "C" not null,
  hub_host_hash bigint not null,             -- of the hub's host, which may have opted out
  named_at timestamptz not null,             -- when the feed was last seen to name the hub
  state text not null default 'found' check (state in ('found', 'asked', 'active', 'denied', 'failed')),
  words text not null default '',
  token text collate "C" unique,             -- of the callback; null: never asked
  secret text,
  asked_until timestamptz,                   -- until then the hub's verification is answered; null: nothing was asked
  lease_ends_at timestamptz,
  next_at timestamptz not null,              -- when the hub is asked, or asked again
  failures smallint not null default 0,      -- in a row
  deliveries bigint not null default 0,
  forged bigint not null default 0,
  delivered_at timestamptz,
  primary key (host_hash, url_hash)
);
create index websub_subscription_next on websub_subscription (next_at) where state in ('found', 'asked', 'active');

-- Down Migration

drop table websub_subscription;
drop table hint;
drop table hint_key;
drop table hint_host;
