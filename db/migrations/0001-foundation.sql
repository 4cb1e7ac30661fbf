-- The first tables: registry, crawlers, delegation, frontier, pages.
-- Old coordinators: none exist before this one.
-- Tables that grow with the web (frontier_*, page, page_fetch, link) are keyed by host hash and partitioned
-- by it, so that they distribute over servers without a change of code (design section 11).
-- Up Migration

create extension if not exists pg_trgm with schema public;

------------------------------------------------------------------------------ registry

-- One row per applied import. The generation in force is the newest with state 'applied'.
create table registry_generation (
  generation integer primary key generated always as identity,
  state text not null check (state in ('staged', 'applied', 'rolled-back')),
  created_at timestamptz not null default now(),
  applied_at timestamptz,
  counts jsonb not null default '{}'
);

-- What each file of an import was and how it went: read, kept, ignored, malformed.
create table registry_source (
  generation integer not null references registry_generation on delete cascade,
  file text not null,
  format text not null,
  registry text,
  file_date date,
  sha256 text not null,
  counts jsonb not null,
  primary key (generation, file)
);

create table holder (
  holder_id integer primary key generated always as identity,
  -- 'ripencc:org-handle:ORG-EX1-RIPE', 'arin:org-handle:…', '…:opaque-id:…', 'name:…': one holder per key
  holder_key text collate "C" not null unique,
  name text not null,
  handle text,
  registry text
);
create index holder_name_trigram on holder using gin (name gin_trgm_ops);
create index holder_handle on holder (handle);

-- A node of the registry hierarchy. Its identity across imports is its range; a subnet that an import
-- no longer holds keeps its row (and its delegation) with removed_in set, so that rollback can return it.
create table subnet (
  subnet_id integer primary key generated always as identity,
  first_address inet not null,
  last_address inet not null,
  parent_id integer references subnet,
  holder_id integer references holder,
  country text,
  registry text not null,
  name text not null default '',
  added_in integer not null references registry_generation,
  removed_in integer references registry_generation,
  check (family(first_address) = family(last_address) and first_address <= last_address)
);
create unique index subnet_range on subnet (first_address, last_address);
create index subnet_parent on subnet (parent_id);
create index subnet_holder on subnet (holder_id);

-- What each generation changed, enough to undo it and to show the history of a range.
create table subnet_change (
  generation integer not null references registry_generation,
  subnet_id integer not null references subnet,
  change text not null check (change in ('added', 'removed', 'changed', 'returned', 'reparented')),
  before jsonb,
  after jsonb,
  primary key (generation, subnet_id, change)
);

------------------------------------------------------------------------------ crawlers

create table crawler (
  crawler_id integer primary key generated always as identity,
  name text not null unique,
  key_hash text not null,                    -- SHA-256 of the key, hex; the key itself is never stored
  created_at timestamptz not null default now(),
  revoked_at timestamptz,
  address inet,                              -- public address
  subnet_id integer references subnet,       -- where that address lies
  place text,
  country text,
  latitude double precision,
  longitude double precision,
  pages_per_day integer not null default 100000,
  bytes_per_day bigint not null default 10000000000,
  concurrent_hosts integer not null default 1,
  probe_methods text[] not null default '{}',
  software_version text,
  state text not null default 'offline' check (state in ('online', 'offline', 'draining')),
  connected_at timestamptz,
  last_seen_at timestamptz,
  offline_reason text,
  heartbeat jsonb not null default '{}'
);

-- Highest result sequence that is committed, per crawler and on-disk spool: what makes a result that
-- arrives twice count once.
create table spool (
  crawler_id integer not null references crawler on delete cascade,
  spool_id uuid not null,
  acknowledged_sequence bigint not null default 0,
  primary key (crawler_id, spool_id)
);

-- Round-trip times between crawlers, measured by themselves.
create table crawler_rtt (
  from_crawler_id integer not null references crawler on delete cascade,
  to_crawler_id integer not null references crawler on delete cascade,
  rtt_ms real not null,
  method text not null,
  measured_at timestamptz not null,
  primary key (from_crawler_id, to_crawler_id)
);

------------------------------------------------------------------------------ delegation

-- One probe round: asking crawlers in turn until decided.
create table probe_round (
  round_id integer primary key generated always as identity,
  subnet_id integer not null references subnet,
  cause text not null check (cause in ('new-subnet', 'slow-fetches', 'crawler-left', 'overload', 'operator', 'retry')),
  policy text not null,
  parameters jsonb not null default '{}',
  target_url text not null,
  target_address inet not null,
  started_at timestamptz not null,
  decided_at timestamptz not null,
  crawler_id integer references crawler,     -- null: nobody could take it
  runner_up_id integer references crawler,
  reason jsonb not null                      -- {type, …}: see core/delegation
);
create index probe_round_subnet on probe_round (subnet_id, decided_at);

create table probe (
  round_id integer not null references probe_round on delete cascade,
  ordinal smallint not null,
  crawler_id integer not null references crawler,
  method text not null,
  outcome text not null,
  rtt_ms real,
  detail text not null default '',
  primary key (round_id, ordinal)
);

-- This subnet is crawled by that crawler.
create table delegation (
  subnet_id integer primary key references subnet,
  crawler_id integer not null references crawler,
  round_id integer references probe_round,   -- the deciding round; null for a crawler's own subnet
  cause text not null check (cause in ('own-subnet', 'probe-round', 'overload', 'crawler-left', 'operator')),
  measured boolean not null,                 -- false: decided without any answer, to be tried again
  rtt_ms real,
  runner_up_id integer references crawler,
  runner_up_rtt_ms real,
  delegated_at timestamptz not null
);
create index delegation_crawler on delegation (crawler_id);

create table delegation_history (
  subnet_id integer not null references subnet,
  changed_at timestamptz not null,
  from_crawler_id integer references crawler,
  to_crawler_id integer references crawler,  -- null: the delegation was dropped
  cause text not null,
  round_id integer references probe_round,
  reason text not null
);
create index delegation_history_subnet on delegation_history (subnet_id, changed_at);

------------------------------------------------------------------------------ frontier

-- One row per host: where it lies, when it may be asked again, who holds its lease.
create table frontier_host (
  host_hash bigint not null,
  host text collate "C" not null,
  state text not null default 'unresolved' check (state in ('unresolved', 'resolved', 'refused', 'unresolvable')),
  state_reason text not null default '',
  resolve_at timestamptz not null default now(),   -- when to ask DNS (again)
  resolve_failures smallint not null default 0,
  addresses inet[] not null default '{}',
  subnet_id integer,                         -- most specific non-unary subnet of the first address
  admitted_at timestamptz not null default now(),
  url_count integer not null default 0,
  due_at timestamptz,                        -- earliest next_fetch_at of its due URLs; null: nothing due
  not_before timestamptz not null default '-infinity',   -- politeness: no fetch earlier
  lease_id bigint,
  primary key (host_hash)
) partition by hash (host_hash);

create table frontier_url (
  host_hash bigint not null,
  url_hash bigint not null,
  url text collate "C" not null,
  state text not null default 'due' check (state in ('due', 'leased', 'refused', 'gone')),
  depth smallint not null default 0,
  back_links integer not null default 0,
  discovered_at timestamptz not null default now(),
  next_fetch_at timestamptz not null default now(),
  lease_id bigint,
  visits integer not null default 0,
  failures smallint not null default 0,      -- in a row
  last_fetched_at timestamptz,
  last_outcome text,
  last_status smallint,
  last_reason text,
  etag text,
  last_modified text,
  primary key (host_hash, url_hash)
) partition by hash (host_hash);

create table lease (
  lease_id bigint primary key generated always as identity,
  crawler_id integer not null references crawler,
  host_hash bigint not null,
  host text collate "C" not null,
  granted_at timestamptz not null,
  expires_at timestamptz not null,
  closed_at timestamptz,
  url_count integer not null,
  open_urls integer not null,                -- URLs without a result yet
  ending text check (ending in ('done', 'expired', 'returned'))
);
-- A host is leased to one crawler at a time, whatever collides.
create unique index lease_open_host on lease (host_hash) where closed_at is null;
create index lease_open on lease (expires_at) where closed_at is null;
create index lease_open_crawler on lease (crawler_id) where closed_at is null;

------------------------------------------------------------------------------ results

create table page (
  host_hash bigint not null,
  url_hash bigint not null,
  url text collate "C" not null,
  host text collate "C" not null,
  crawler_id integer not null,
  fetched_at timestamptz not null,
  status smallint not null,
  content_type text not null,
  language text,
  text_search_config text not null,
  title text not null,
  description text not null,
  excerpt text not null,
  headings jsonb not null,
  canonical_url text,
  noindex boolean not null,
  digest text not null,
  simhash text not null,
  words integer not null,
  body_bytes integer not null,
  wire_bytes integer not null,
  shipped_bytes integer not null,
  lexemes tsvector not null,
  primary key (host_hash, url_hash)
) partition by hash (host_hash);
create index page_lexemes on page using gin (lexemes);

-- Every fetch, for history, recalibration and rates. (FETCH alone is a reserved word.)
create table page_fetch (
  host_hash bigint not null,
  url_hash bigint not null,
  crawler_id integer not null,
  fetched_at timestamptz not null,
  outcome text not null,
  blame text,
  status smallint,
  address inet,
  dns_ms real,
  connect_ms real,
  tls_ms real,
  first_byte_ms real,
  total_ms real not null,
  wire_bytes integer not null,
  body_bytes integer not null,
  shipped_bytes integer not null
) partition by hash (host_hash);
create index page_fetch_url on page_fetch (host_hash, url_hash, fetched_at);
create index page_fetch_host on page_fetch (host_hash, fetched_at);
create index page_fetch_time on page_fetch (fetched_at);

create table link (
  host_hash bigint not null,                 -- of the page that holds the link
  url_hash bigint not null,
  to_host_hash bigint not null,
  to_url_hash bigint not null,
  anchor text not null,
  nofollow boolean not null,
  primary key (host_hash, url_hash, to_host_hash, to_url_hash)
) partition by hash (host_hash);

do $$
begin
  for part in 0..7 loop
    execute format('create table frontier_host_%s partition of frontier_host for values with (modulus 8, remainder %s)', part, part);
    execute format('create table frontier_url_%s partition of frontier_url for values with (modulus 8, remainder %s)', part, part);
    execute format('create table page_%s partition of page for values with (modulus 8, remainder %s)', part, part);
    execute format('create table page_fetch_%s partition of page_fetch for values with (modulus 8, remainder %s)', part, part);
    execute format('create table link_%s partition of link for values with (modulus 8, remainder %s)', part, part);
  end loop;
end $$;

create index frontier_host_due on frontier_host (subnet_id, due_at) where lease_id is null and state = 'resolved';
create index frontier_host_unresolved on frontier_host (resolve_at) where state in ('unresolved', 'unresolvable');
create index frontier_host_outdated on frontier_host (resolve_at) where state = 'resolved';
create index frontier_host_name on frontier_host (host);
create index frontier_url_due on frontier_url (host_hash, next_fetch_at) where state = 'due';
-- Refused by robots.txt: to be asked for again.
create index frontier_url_refused on frontier_url (next_fetch_at) where state = 'refused' and last_outcome = 'refused-by-robots';
create index frontier_url_lease on frontier_url (lease_id) where lease_id is not null;

------------------------------------------------------------------------------ operation

create table setting (
  name text primary key,
  value jsonb not null,
  changed_at timestamptz not null default now(),
  changed_by text not null
);

-- A run of `nearcrawl up`: what it was asked for and whether it came to its end.
create table run (
  run_id integer primary key generated always as identity,
  parameters jsonb not null,
  started_at timestamptz not null default now(),
  finished_at timestamptz,
  summary jsonb
);

-- Down Migration
