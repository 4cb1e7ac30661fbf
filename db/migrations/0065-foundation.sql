-- The database as of version 0.2.0, sorted by rooms: what the migrations 0001 to 0065 made, none of which was ever released.
-- A database that has all of them has all of this, and takes it as run (db/schema-state.ts).
-- needs: nothing
-- Tables that grow with the web (frontier_*, page, out_link, …) are keyed by host hash and lie in eight parts by it, so that
-- they distribute over servers without a change of code; page_fetch lies in a part for each day. The parts are made at the end.
-- Up Migration

create extension if not exists pg_trgm with schema public;

------------------------------------------------------------------------------ subnets, registry

-- One row per applied import. The generation in force is the newest with state 'applied'. 'stand-in': the two roots that
-- stand in where there is no registry; no import.
create table registry_generation (
  generation integer primary key generated always as identity,
  state text not null check (state in ('staged', 'applied', 'rolled-back', 'stand-in')),
  created_at timestamptz not null default now(),
  applied_at timestamptz,
  counts jsonb not null default '{}',
  rolled_back_at timestamptz,                -- null: it is in force, or was rolled back before this was kept
  rolled_back_to integer                     -- in force after that; null: none was
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
-- Its references have no foreign keys: only imports write them, one at a time, both sides in one transaction, and checking
-- every row of ten million again took longer than writing it. Nobody goes down the tree in SQL, so parent_id has no index.
create table subnet (
  subnet_id integer primary key generated always as identity,
  first_address inet not null,
  last_address inet not null,
  parent_id integer,
  holder_id integer,
  country text,
  registry text not null,
  name text not null default '',
  added_in integer not null,                 -- registry_generation, as removed_in
  removed_in integer,
  -- It overlaps another without one holding the other: the few that a look-up by address has to find beside the chain of
  -- parents.
  crosses boolean not null default false,
  check (family(first_address) = family(last_address) and first_address <= last_address)
);
create unique index subnet_range on subnet (first_address, last_address);
create index subnet_holder on subnet (holder_id);
create index subnet_crossing on subnet (first_address) where crosses;

-- A subnet as it was before a generation changed, moved, returned or removed it: enough to undo the
-- generation and to tell the history of a range. Subnets that it added have no row: subnet.added_in says it.
create table subnet_before (
  generation integer not null references registry_generation,
  subnet_id integer not null,
  change text not null check (change in ('changed', 'moved', 'returned', 'removed')),
  parent_id integer,
  holder_id integer,
  country text,
  registry text not null,
  name text not null,
  crosses boolean not null,
  removed_in integer,
  primary key (generation, subnet_id)
);
create index subnet_before_subnet on subnet_before (subnet_id);

-- A holder's name and handle before a generation gave it others.
create table holder_before (
  generation integer not null references registry_generation,
  holder_id integer not null references holder,
  name text not null,
  handle text,
  primary key (generation, holder_id)
);

-- As a generation had left what `subnet_before` and `holder_before` tell the past of, so that it can be put in force again;
-- only while it is rolled back.
create table subnet_after (
  generation integer not null references registry_generation,
  subnet_id integer not null,
  parent_id integer,
  holder_id integer,
  country text,
  registry text not null,
  name text not null,
  crosses boolean not null,
  removed_in integer,
  primary key (generation, subnet_id)
);

create table holder_after (
  generation integer not null references registry_generation,
  holder_id integer not null references holder,
  name text not null,
  handle text,
  primary key (generation, holder_id)
);

-- Work on the registry that was asked for on a page or over the API: what, by whom, how far it is, how it ended.
-- While a job runs, its coordinator holds the advisory lock 'nearcrawl registry-job' of the schema: a job that says
-- that it runs while nobody holds the lock was broken off.
create table registry_job (
  job_id integer primary key generated always as identity,
  kind text not null check (kind in ('fetch', 'plan', 'apply', 'rollback', 'rollforward')),
  -- Where the files are, the plan that is applied, the generation that is rolled back.
  asked jsonb not null,
  asked_by text not null,
  via text not null check (via in ('page', 'api')),
  state text not null check (state in ('running', 'done', 'failed', 'cancelled', 'broken-off')),
  started_at timestamptz not null,
  seen_at timestamptz not null,              -- its coordinator's last sign of it
  ended_at timestamptz,
  -- {text, share, lines}: where it is now, how much of that is done (0 to 1), and what lies behind it.
  progress jsonb not null,
  cancel_asked_by text,
  exit_code integer,
  words text,                                -- why it failed
  result jsonb                               -- what the command printed
);
create unique index registry_job_running on registry_job (state) where state = 'running';

------------------------------------------------------------------------------ crawlers

create table crawler (
  crawler_id integer primary key generated always as identity,
  name text not null unique,
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
  heartbeat jsonb not null default '{}',
  -- It is to hand its subnets over and gets no new leases; outlives its sessions and the coordinator's runs.
  draining_since timestamptz,
  -- 'crawler': it said that it leaves for good, and is taken back when it comes again. 'trust': its results are not trusted;
  -- its subnets are handed over. 'partner': who hosts it, who may take it back as well.
  drain_asked_by text check (drain_asked_by in ('operator', 'crawler', 'trust', 'partner')),
  drain_subnets integer not null default 0,  -- that it had when the draining began
  -- It came into a fleet at work (or back into it) and was not yet given what is nearest to it.
  joining_since timestamptz default now(),
  public_key text unique,                    -- Ed25519, 32 bytes in base64url; null: it has no identity of its own
  -- SHA-256 (hex) of the ticket of the last welcome, and of the one that was shown for that welcome.
  ticket_hash text,
  previous_ticket_hash text,
  -- The last arrivals of this identity, the latest first: [{at, address, instanceId}].
  arrivals jsonb not null default '[]',
  seen_address inet,                         -- where its last connection came from
  expected_address inet,                     -- and the one that it came from before, when that was another
  address_changed_at timestamptz,
  -- What its operator gives it at most; null: what its partner allows.
  granted_pages_per_day integer,
  granted_bytes_per_day bigint,
  -- An operator asked for a new key, and how long the one before stays good; null: nobody has asked.
  rotation_asked_at timestamptz,
  rotation_grace_hours real,
  -- How the process before ended, in its own words (hello.lastEnd), and why it was away the last time, in ours.
  last_end_at timestamptz,
  last_words text,
  was_offline_since timestamptz,
  was_offline_reason text,
  -- What it said when it last came; null: no supervisor runs it.
  release_version text,
  release_digest text,
  dock_version text,
  release_policy text,                       -- its partner's: newest, pinned to … , delayed by …
  -- The partner's wish: its address is not in the list that sites verify us by.
  unlisted boolean not null default false,
  partner_contact text,                      -- whom to reach at the partner, as its crawler says; null: not told
  -- Of its last hello; null: it has not said. What holds is the least of this and what is granted.
  partner_pages_per_day integer,
  partner_bytes_per_day bigint,
  -- Which hosts it may have, by name and language (domain-sets/domain-set.ts). Each text is one set; a host must be in one of
  -- them. None: every host.
  domain_sets text[] not null default '{}',
  partner_domain_sets text[] not null default '{}',
  -- What it was told last (frontier/pace), by how much due work; null: nothing yet.
  pace text check (pace in ('slow-down', 'steady', 'hurry-up')),
  pace_due_slices integer,
  pace_since timestamptz,
  coordinator_number integer                 -- of the coordinator it is, or was last, connected to; null: of none that said so
);

create table crawler_key (
  key_id integer primary key generated always as identity,
  crawler_id integer not null references crawler on delete cascade,
  key_hash text not null,                    -- SHA-256 of the key, hex; the key itself is never stored
  scopes text[] not null default '{probe,crawl}' check (scopes <@ '{probe,crawl}' and cardinality(scopes) > 0),
  created_at timestamptz not null default now(),
  kept_at timestamptz,                       -- null: it was sent, and nobody has said or shown that it arrived
  expires_at timestamptz,                    -- null: when it is replaced or revoked
  last_used_at timestamptz,
  revoked_at timestamptz,
  replaced_by integer references crawler_key on delete set null,
  unique (crawler_id, key_hash)
);

create table invitation (
  invitation_id integer primary key generated always as identity,
  secret_hash text not null unique,          -- SHA-256, hex
  name text not null,
  renews boolean not null default false,     -- for a crawler that is there and gets a new identity
  scopes text[] not null default '{probe,crawl}' check (scopes <@ '{probe,crawl}' and cardinality(scopes) > 0),
  pages_per_day integer,                     -- null: what the partner allows
  bytes_per_day bigint,
  created_by text not null,
  created_at timestamptz not null,
  expires_at timestamptz not null,
  revoked_at timestamptz,
  redeemed_at timestamptz,
  public_key text,                           -- who redeemed it
  crawler_id integer references crawler on delete set null,
  kept_at timestamptz,                       -- the crawler has its own key: the secret opens nothing any more
  downloaded_at timestamptz                  -- the crawler's file, first; null: by nobody who used its line
);
create index invitation_name on invitation (name);

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

-- Written when a crawler comes back; the latest hundred of each.
create table crawler_absence (
  absence_id bigint primary key generated always as identity,
  crawler_id integer not null references crawler on delete cascade,
  away_since timestamptz not null,
  back_at timestamptz not null,
  reason text not null,                      -- the coordinator's own record
  last_words text                            -- how the process before ended, as it says; null: it did not end
);
create index crawler_absence_of on crawler_absence (crawler_id, absence_id);

-- What partners do not let their crawlers touch, as the latest hello says: the coordinator that leads asks nobody for it.
create table crawler_denies (
  crawler_id integer primary key references crawler on delete cascade,
  denies jsonb not null
);

-- Moves of crawlers to other hosts: where each stands, and to which identity a name was signed over. Who runs a
-- crawler is its row's public key, which the move changes in the same transaction as its own step to 'moved'.
create table crawler_move (
  move_id integer primary key generated always as identity,
  crawler_id integer not null references crawler on delete cascade,
  other_crawler_id integer not null references crawler on delete cascade,   -- whose host it is to run on
  name text not null,
  other_name text not null,
  -- Ed25519, base64url: of the crawler as it was, and of the other host.
  from_public_key text not null,
  to_public_key text not null,
  step text not null default 'asked'
    check (step in ('asked', 'emptying', 'packing', 'sending', 'moved', 'running', 'failed')),
  words text not null default '',            -- why it failed
  asked_at timestamptz not null,
  changed_at timestamptz not null,
  bytes bigint not null default 0,           -- that are to be sent, and that were
  sent_bytes bigint not null default 0,
  -- What the crawler sends (SHA-256, hex), and its signature under that and both keys (protocol/move.ts).
  digest text,
  signature text
);
-- A host takes part in one move at a time; the statement that asks for one looks across the two columns.
create unique index crawler_move_open on crawler_move (crawler_id)
  where step in ('asked', 'emptying', 'packing', 'sending');
create unique index crawler_move_open_other on crawler_move (other_crawler_id)
  where step in ('asked', 'emptying', 'packing', 'sending');
create index crawler_move_from on crawler_move (from_public_key);
create index crawler_move_to on crawler_move (to_public_key);

------------------------------------------------------------------------------ coordinators

-- Each takes a number when it starts, and holds an advisory lock of that number for as long as it runs
-- (crawlers/coordinator-presence-store).
create sequence coordinator_number as integer;

-- Those that run, and for half a minute those that were killed.
create table running_coordinator (
  coordinator_number integer primary key,
  beats bigint not null default 0            -- counts up while it runs; others watch it with clocks of their own
) with (fillfactor = 50);

-- The one that leads does what must be done once for the whole fleet (rounds, hand-overs, balance …).
create table fleet_lead (
  only_one boolean primary key default true check (only_one),
  coordinator_number integer,                -- null: nobody leads
  term bigint not null default 0,            -- counts those that led
  since timestamptz
);

-- Where crawlers reach a coordinator of this database; told to every crawler, so that it knows where to go from one that is gone.
create table coordinator_address (
  crawler_url text primary key,
  seen_at timestamptz not null               -- when one that is reached there last ran
);

-- Where partners reach the coordinator and what its certificate's key hashes to, as it said when it last started.
create table coordinator_place (
  only_one boolean primary key default true check (only_one),
  web_url text not null,
  certificate_pin text,                      -- SHA-256 of the SubjectPublicKeyInfo, base64url; null: no TLS of its own
  has_public_url boolean not null default false,   -- web_url is where others say it is reached, maybe by a proxy
  stated_at timestamptz not null,
  domain_sets text[] not null default '{}'   -- its own: `nearcrawl who` reads them where no coordinator runs
);

-- Which versions of this software have run as a coordinator on this database: crawlers of the same versions are ours,
-- whatever else a crawler states is its word alone.
create table coordinator_version (
  version text collate "C" primary key,
  first_ran_at timestamptz not null default now()
);
-- The only one before this table.
insert into coordinator_version (version) values ('0.1.0');

-- A run of `nearcrawl up`: what it was asked for and whether it came to its end.
create table run (
  run_id integer primary key generated always as identity,
  parameters jsonb not null,
  started_at timestamptz not null default now(),
  finished_at timestamptz,
  summary jsonb
);

------------------------------------------------------------------------------ delegation

-- One probe round: asking crawlers in turn until decided. A round for something finer than a subnet names the subnet around
-- it apart, so that what is known of the subnet as a whole does not change by it.
create table probe_round (
  round_id integer primary key generated always as identity,
  subnet_id integer references subnet,
  cause text not null check (cause ~ '^[a-z]+(-[a-z0-9]+)*$'),
  policy text not null,
  parameters jsonb not null default '{}',
  target_url text not null,
  target_address inet not null,
  started_at timestamptz not null,
  decided_at timestamptz not null,
  crawler_id integer references crawler,     -- null: nobody could take it
  runner_up_id integer references crawler,
  reason jsonb not null,                     -- {type, …}: delegation/
  -- That the decision compares; probes by others were made on the way to it, and are not compared. Null: nobody was asked.
  method text,
  within_subnet_id integer references subnet,
  constraint probe_round_of_one check (num_nonnulls(subnet_id, within_subnet_id) = 1)
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
  -- 'get': the connect time of the crawl's own fetch, which cost no probe
  how text not null default 'probe' check (how in ('probe', 'get')),
  primary key (round_id, ordinal)
);

-- What coordinators that do not lead want measured again.
create table round_request (
  subnet_id integer primary key,
  cause text not null,
  asked_at timestamptz not null default now()
);

-- This subnet is crawled by that crawler. Its round and that of a change in delegation_history may be let go while they are
-- told: whoever deletes rounds keeps what decides a delegation (delegation/old-round-store.ts).
create table delegation (
  subnet_id integer primary key references subnet,
  crawler_id integer not null references crawler,
  round_id integer,                          -- the deciding round; null for a crawler's own subnet
  -- 'first-fetch': for the time being, until the crawler's own first fetch has been held against others.
  cause text not null check (cause ~ '^[a-z]+(-[a-z0-9]+)*$'),
  measured boolean not null,                 -- false: decided without any answer, to be tried again
  rtt_ms real,
  runner_up_id integer references crawler,
  runner_up_rtt_ms real,
  delegated_at timestamptz not null,
  -- The range answers from many places at once: it was given away by load, and its time says nothing.
  anycast boolean not null default false,
  -- Rounds in a row that nobody answered, and when the next one is due; null: nothing is to be tried again.
  unanswered_rounds smallint not null default 0,
  retry_at timestamptz
);
create index delegation_unmeasured on delegation (retry_at) where not measured;
create index delegation_anycast on delegation (subnet_id) where anycast;
-- Subnets that went to relieve somebody, and may go home when there is room.
create index delegation_displaced on delegation (subnet_id) where cause = 'overload';
-- Decisions that are probed again after a while, the oldest first.
create index delegation_age on delegation (delegated_at, subnet_id) where cause = 'probe-round' and measured;
-- A crawler's subnets, gone through in turn.
create index delegation_turn on delegation (crawler_id, subnet_id);

create table delegation_history (
  subnet_id integer not null references subnet,
  changed_at timestamptz not null,
  from_crawler_id integer references crawler,
  to_crawler_id integer references crawler,  -- null: the delegation was dropped
  cause text not null,
  round_id integer,
  reason text not null
);
create index delegation_history_subnet on delegation_history (subnet_id, changed_at);
-- What a crawler that comes back had before it left.
create index delegation_history_left on delegation_history (from_crawler_id, changed_at)
  where cause in ('crawler-left', 'drained');
create index delegation_history_time on delegation_history (changed_at);

-- Delegations finer than a subnet: one host whose name resolves differently by place (GeoDNS), and parts of a
-- leaf whose addresses measure far apart. A host without one is crawled by its subnet's crawler.
create table finer_delegation (
  finer_id integer primary key generated always as identity,
  subnet_id integer not null references subnet,   -- the leaf that is split; the subnet in which the host was found
  host_hash bigint unique,                        -- one host …
  first_address inet,                             -- … or a part of the leaf
  last_address inet,
  crawler_id integer not null references crawler,
  round_id integer not null references probe_round,   -- the latest round with an answer
  cause text not null check (cause ~ '^[a-z]+(-[a-z0-9]+)*$'),
  measured boolean not null,                      -- false: nobody measured for this crawler; to be tried again
  rtt_ms real,
  runner_up_id integer references crawler,
  runner_up_rtt_ms real,
  subnet_rtt_ms real,                             -- what the subnet's own crawler measured in that round
  seen jsonb not null default '[]',               -- a host: [{crawlerId (null: the coordinator), addresses}]
  found_at timestamptz not null,
  delegated_at timestamptz not null,              -- since when this crawler has it
  review_at timestamptz not null,                 -- when it is probed again
  check (num_nonnulls(host_hash, first_address) = 1),
  check (num_nonnulls(first_address, last_address) <> 1),
  check (first_address is null or family(first_address) = family(last_address) and first_address <= last_address)
);
create unique index finer_delegation_part on finer_delegation (subnet_id, first_address) where host_hash is null;
create index finer_delegation_crawler on finer_delegation (crawler_id);
create index finer_delegation_review on finer_delegation (review_at);
create index finer_delegation_round on finer_delegation (round_id);

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
  -- Null: the host goes with its subnet. Kept in step by whoever writes finer_delegation, addresses or subnet_id.
  finer_id integer,
  -- What its pages weigh, counted with each result: URLs fetched at least once, all fetches, their bytes.
  fetched_urls integer not null default 0,
  fetches integer not null default 0,
  fetched_bytes bigint not null default 0,
  robots_state text,                         -- rules, none, closed, unreachable; null: nobody has told
  robots_at timestamptz,
  -- Politeness, as the last crawler left it; null: nobody has told.
  crawl_delay_ms integer,
  back_off_ms integer,
  backed_off_at timestamptz,
  usual_ms integer,
  http_version text,                         -- how it was spoken to last
  tls_version text,
  -- The budget: URLs held back, those named as sitemaps or feeds, links from other hosts, and what became of the rest.
  held_urls integer not null default 0,
  list_urls integer not null default 0,
  outside_links integer not null default 0,
  good_pages integer not null default 0,
  near_duplicates integer not null default 0,
  not_found_pages integer not null default 0,
  empty_pages integer not null default 0,
  failed_urls integer not null default 0,
  trapped_links integer not null default 0,
  -- Set while an opt-out in force covers the host: it gets no lease, nothing of it is admitted or found.
  opt_out_id integer,
  -- Addresses that two crawlers were led to by the host's name and that our own resolver did not name, the latest first.
  seen_addresses inet[] not null default '{}',
  -- What one crawler alone said so far, and which: counts for nothing until another one says it.
  reported_addresses inet[] not null default '{}',
  reported_by integer[] not null default '{}',
  -- URLs that came when the host had no room for them, not even held: counted each time that a batch names them.
  left_out_urls bigint not null default 0,
  language text,                             -- of most of its pages, as ISO 639 code; null: not known yet
  -- Its parent gave the host to this coordinator, by an address that is looked up elsewhere otherwise.
  given boolean not null default false,
  -- The highest score of its new URLs that are due and not in hand; null: none, not known, or the order does not ask.
  worth double precision,
  -- What its leases leave of the mix of new and old URLs between two whole numbers: below 1 (frontier/order/mix); null: no
  -- lease was mixed yet.
  mix_carry double precision,
  primary key (host_hash)
) partition by hash (host_hash);
-- A crawler with many subnets finds the hosts that are due longest in this order and stops when it has enough.
create index frontier_host_longest_due on frontier_host (due_at, host_hash) where lease_id is null and state = 'resolved';
create index frontier_host_finer on frontier_host (finer_id, due_at) where finer_id is not null;
create index frontier_host_opted_out on frontier_host (host_hash) where opt_out_id is not null;
-- Hosts at their bounds, those that leave out most first: for people and gauges.
create index frontier_host_left_out on frontier_host (left_out_urls desc, host_hash) where left_out_urls > 0;
create index frontier_host_unresolved on frontier_host (resolve_at) where state in ('unresolved', 'unresolvable');
create index frontier_host_outdated on frontier_host (resolve_at) where state = 'resolved';
-- A site with everything below it is a range of names that are read backwards (frontier/opted-out-hosts.ts).
create index frontier_host_site on frontier_host (reverse(host) text_pattern_ops);
-- Of a subnet, in the order in which they may be leased: due, and rested. One that rests is not gone past by every request
-- that looks for work, and one that was leased stands behind those that wait.
create index frontier_host_ready on frontier_host (subnet_id, greatest(due_at, not_before))
  where lease_id is null and state = 'resolved' and due_at is not null;
-- Empty where the order does not ask.
create index frontier_host_worthiest on frontier_host (worth desc, host_hash)
  where worth is not null and lease_id is null and state = 'resolved';

create table frontier_url (
  host_hash bigint not null,
  url_hash bigint not null,
  url text collate "C" not null,
  -- A URL under a lease is 'due': the lease has the list of its URLs.
  state text not null default 'due' check (state in ('due', 'refused', 'gone')),
  depth smallint not null default 0,
  back_links integer not null default 0,
  discovered_at timestamptz not null default now(),
  next_fetch_at timestamptz not null default now(),
  visits integer not null default 0,
  failures smallint not null default 0,      -- in a row
  last_fetched_at timestamptz,
  last_outcome text,
  last_status smallint,
  last_reason text,
  etag text,
  last_modified text,
  redirects smallint not null default 0,     -- in a row that led here
  lists smallint not null default 0,         -- sitemaps and feeds in a row that led here
  digest bytea,                              -- SHA-256 of the body last read: a validator beside etag
  -- What the URL counts for in its host's budget (frontier/page-worth); null: for nothing.
  worth text,
  -- Visits whose content could be compared with the one before, and how many of them found it changed.
  compared_visits integer not null default 0,
  content_changes integer not null default 0,
  -- Time between a compared visit and the one before it, in all: of visits that found a change, and that found none.
  changed_seconds real not null default 0,
  unchanged_seconds real not null default 0,
  -- Estimated changes a day (recrawl/change-rate); null: not known.
  changes_per_day real,
  -- Links on the page as last visited, and the share of links that the last two visits do not have in common; null: not
  -- visited, or once only.
  out_links integer,
  change_ratio real,
  stated_frequency smallint,                 -- changefreq of its sitemap: 0 always to 6 never; null: none stated
  stated_modified_day smallint,              -- lastmod of its sitemap or feed, days since 2000-01-01; null: none stated
  primary key (host_hash, url_hash)
) partition by hash (host_hash);
create index frontier_url_due on frontier_url (host_hash, next_fetch_at) where state = 'due';
-- Refused by robots.txt: to be asked for again.
create index frontier_url_refused on frontier_url (next_fetch_at) where state = 'refused' and last_outcome = 'refused-by-robots';
-- URLs that are gone, or whose host had no public address, are looked at again when their wait is over.
create index frontier_url_given_up on frontier_url (next_fetch_at)
  where state = 'gone' or (state = 'refused' and last_outcome = 'refused-address');

-- URLs over their hosts' budgets, packed, up to 64 of a host in a row: of the 79 URLs that a page of a new site names, 42 are.
-- Each becomes a row of frontier_url when the host's budget has room for it.
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
-- In the row as long as it fits into a page, compressed from 2 KB on, as links are (out_link).
alter table held_urls
  alter column url_hashes set storage main,
  alter column links set storage main,
  alter column urls set storage main;

-- A row for each URL, its columns named as those of frontier_url.
create view held_url as
select b.host_hash, t.url_hash, t.url, b.depth, b.redirects, b.lists, t.links as back_links, b.held_at as discovered_at,
  b.batch, t.place
from held_urls b
cross join lateral unnest(b.url_hashes, b.links, string_to_array(b.urls, e'\n'))
  with ordinality as t (url_hash, links, url, place)
where t.place > b.released;

-- URLs that were given to the crawler and have no place in the frontier, with the reason.
create table rejected_url (
  url text primary key,                      -- as it was given, cut at 500 characters
  reason text not null,
  source text not null,                      -- 'operator', or the page that linked to it
  first_seen_at timestamptz not null default now(),
  times integer not null default 1,
  last_seen_at timestamptz not null default now()
);
create index rejected_url_seen on rejected_url (last_seen_at);

-- Of hosts with many due URLs those that an order other than breadth-first puts first, so that a lease does not score
-- thousands of URLs to choose twenty. Made by the lease that finds none, taken from by those after it, for minutes. After a
-- crash of the server it is empty, which costs each such host one look.
create unlogged table url_shortlist (
  host_hash bigint primary key,
  order_name text not null,                  -- the order that it was made for
  made_at timestamptz not null,
  -- Keys of URLs that were never visited, the highest score first, with their scores; and of others. So many of each are used up.
  new_urls bigint[] not null,
  new_worths real[] not null,
  old_urls bigint[] not null,
  new_used integer not null default 0,
  old_used integer not null default 0
) with (fillfactor = 70);
-- Hashes do not get smaller by being compressed.
alter table url_shortlist
  alter column new_urls set storage external,
  alter column new_worths set storage external,
  alter column old_urls set storage external;
-- Old ones are dropped by it.
create index url_shortlist_made on url_shortlist (made_at);

-- What results do to other hosts than their own (URLs named there, links that came or went) waits in an outbox, one packed
-- row a batch, and is summed and applied by one coordinator at a time (frontier/link-outbox-store.ts). No batch locks the
-- hosts that its pages link to. Appended to, read through from its start, emptied; without an index, since it is short.
create table link_outbox (
  outbox_number bigint not null generated always as identity,
  crawler_id integer not null,               -- whose results they were
  effects integer not null,                  -- URLs of other hosts
  packed bytea not null,                     -- frontier/link-outbox.ts
  written_at timestamptz not null default now()
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);

-- One row: what is being applied, and how far. Each step moves it on in its own transaction, so that whoever takes over
-- from one that was ended in the middle goes on where that one stopped.
create table link_outbox_bite (
  only_row boolean primary key default true check (only_row),
  bite_number bigint not null default 0,
  outbox_numbers bigint[] not null default '{}', -- empty: nothing is under way
  reached_host bigint,                       -- applied up to this URL, in the order of hosts and URLs; null: nothing is yet
  reached_url bigint,
  moved_at timestamptz not null default now()
);
insert into link_outbox_bite default values;

-- It has the list of its URLs that await a result; the URLs' own rows stay as they are until a result comes. To lease a slice
-- is to write its host and its lease, and none of its URLs. Its crawler has no foreign key: a lease is written for those that
-- the same statement read, and no crawler is ever deleted.
create table lease (
  lease_id bigint primary key generated always as identity,
  crawler_id integer not null,
  host_hash bigint not null,
  host text collate "C" not null,
  granted_at timestamptz not null,
  expires_at timestamptz not null,
  closed_at timestamptz,
  url_count integer not null,
  open_urls integer not null,                -- URLs without a result yet
  ending text check (ending in ('done', 'expired', 'returned')),
  -- It is of a comparison: its URLs stay as they are in the frontier, and its results go into no index.
  is_check boolean not null default false,
  addresses cidr[] not null default '{}',    -- of its host when it began
  -- None for a comparison, whose URLs are rows of double_check, and none when the lease is closed.
  open_url_hashes bigint[] not null default '{}'
);
-- A host is leased to one crawler at a time, whatever collides.
create unique index lease_open_host on lease (host_hash) where closed_at is null;
create index lease_open on lease (expires_at) where closed_at is null;
create index lease_open_crawler on lease (crawler_id) where closed_at is null;

-- What counts as one address, as crawlers see it: an IPv4 address, or the /64 that one subscriber has (RFC 6177).
create function address_key(address inet) returns cidr language sql immutable parallel safe
  return network(set_masklen(address, case family(address) when 4 then 32 else 64 end));

-- Whose turn an address is. All open leases on its hosts are of one crawler; another one's turn comes when they
-- have ended and the address has rested.
create table address_turn (
  address cidr primary key,
  crawler_id integer not null,
  leases integer not null default 0,         -- open, on hosts that have this address
  rest_seconds real not null,
  free_at timestamptz not null default '-infinity',   -- when nothing is leased: for others not before
  since timestamptz not null                 -- leases of this crawler have followed each other since then
);

-- Turns begin and end once for all leases that begin or end at a time: one by one, it was most of what it takes to close them.
-- Both look addresses up by key, however few the table has. They are planned once by each connection, when it ends its first
-- lease; without the two settings, many leases at a time were each compared with all others from then on.
create function address_turns_begin() returns trigger language plpgsql
set enable_nestloop = off set enable_seqscan = off
as $$
begin
  with given as materialized (
    select address, count(*)::int as leases
    from given_leases, unnest(addresses) as address
    where closed_at is null
    group by address
  )
  update address_turn t
  set leases = t.leases + given.leases
  from given
  where t.address = given.address
    and t.address = any(array(select address from given order by address));
  return null;
end $$;

-- A crawler that lost its lease may be in the middle of a request, which takes a minute at most.
create function address_turns_ended() returns trigger language plpgsql
set enable_nestloop = off set enable_seqscan = off
as $$
begin
  with ended as materialized (
    select address, count(*)::int as leases, max(n.closed_at) as closed_at,
      max(n.closed_at) filter (where n.ending = 'expired') as expired_at
    from leases_before o
    join leases_after n using (lease_id), unnest(o.addresses) as address
    where o.closed_at is null and n.closed_at is not null
    group by address
  )
  update address_turn t
  set leases = greatest(0, t.leases - ended.leases),
      free_at = greatest(t.free_at, ended.closed_at + make_interval(secs => t.rest_seconds),
        ended.expired_at + make_interval(secs => t.rest_seconds * 6))
  from ended
  where t.address = ended.address
    and t.address = any(array(select address from ended order by address));
  return null;
end $$;

-- Of leases that are deleted while they are open.
create function address_turns_end() returns trigger language plpgsql as $$
begin
  update address_turn t
  set leases = greatest(0, t.leases - 1),
      free_at = case
        when tg_op = 'DELETE' then t.free_at
        else greatest(t.free_at, new.closed_at
          + make_interval(secs => t.rest_seconds * case new.ending when 'expired' then 6 else 1 end))
      end
  where t.address = any(old.addresses);
  return null;
end $$;

create trigger address_turns_begin after insert on lease
  referencing new table as given_leases
  for each statement execute function address_turns_begin();
create trigger address_turns_end after update on lease
  referencing old table as leases_before new table as leases_after
  for each statement execute function address_turns_ended();
create trigger address_turns_vanish after delete on lease
  for each row when (old.closed_at is null and old.addresses <> '{}')
  execute function address_turns_end();

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
  declared_language text,
  detected_language text,
  published_at timestamptz,
  modified_at timestamptz,
  structured jsonb,                          -- {type, name, description}
  -- Pages whose texts are nearly the same have one group; null: too short to tell.
  text_group bigint,
  -- The page that had this text before; null: this one was the first.
  duplicate_host_hash bigint,
  duplicate_url_hash bigint,
  -- Other hosts that link to it, as the upkeep last counted them; at most 1000 are counted.
  popularity smallint not null default 0,
  -- 0: among the best of the index by what others say of it, which are looked through first. 1: the rest.
  tier smallint not null default 1,
  -- Words of title (A), headings and description (B), and address (C): short, so that ranking by it reads no text.
  head tsvector generated always as (
    ts_filter(lexemes, '{a,b}')
    || setweight(to_tsvector('simple', left(regexp_replace(url, '[^[:alnum:]]+', ' ', 'g'), 300)), 'C')
  ) stored,
  primary key (host_hash, url_hash)
) partition by hash (host_hash);
create index page_lexemes on page using gin (lexemes);
create index page_duplicate on page (text_group) where duplicate_url_hash is not null;
-- No list of pending entries: every search would read it through.
create index page_head on page using gin (head) with (fastupdate = off);
create index page_first_head on page using gin (head) with (fastupdate = off) where tier = 0;
create index page_first_text on page using gin (lexemes) with (fastupdate = off) where tier = 0;
-- Which languages' rules the index has: a look-up for each.
create index page_text_search_config on page (text_search_config);
-- 20 bytes a page: a page that is said to be known is looked up by its digest.
create index page_digest on page using hash (digest);

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

-- Every fetch, for history, recalibration and rates. (FETCH alone is a reserved word.) In a part for each day (UTC), so that
-- old days are dropped instead of deleted row by row. Coordinators make the days ahead (results/fetch-day-store.ts); what finds
-- no day lies in page_fetch_default until one is made for it.
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
  shipped_bytes integer not null,
  -- Whether the fetch found other content than the one before it; null: nothing to compare with.
  changed boolean,
  -- Time since the visit before, where it can be believed (recrawl/change-rate); null: the first visit, or a clock that jumped.
  gap_seconds real
) partition by range (fetched_at);
create index page_fetch_url on page_fetch (host_hash, url_hash, fetched_at);
create index page_fetch_host on page_fetch (host_hash, fetched_at);
create index page_fetch_time on page_fetch (fetched_at);
create index page_fetch_failed on page_fetch (fetched_at) where blame is not null;
create table page_fetch_default partition of page_fetch default;

-- The links of a page as one packed row: a page of the web has a hundred, and a row and two index entries for each took 40 of
-- the 135 KB of log that taking it in cost. Its latest links stand here once: page_links keeps what the visits before it differ
-- by.
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

-- Visits of a page before the latest one that found its links changed, each as what differs from the one after it
-- (core/link-set).
create table page_links (
  host_hash bigint not null,
  url_hash bigint not null,
  visit integer not null,                    -- 1: the URL's first; counted, since clocks jump
  visited_at timestamptz not null,
  link_count integer not null,
  adjacency bytea not null,
  primary key (host_hash, url_hash, visit)
) partition by hash (host_hash);

-- What a crawler with an identity signed for its results: Ed25519 over the text of coordinator/protocol/identity.ts.
create table result_seal (
  crawler_id integer not null references crawler on delete cascade,
  spool_id uuid not null,
  first_sequence bigint not null,
  last_sequence bigint not null,
  digest bytea not null,                     -- SHA-256
  signature bytea not null,
  sealed_at timestamptz not null,            -- when they were stored here
  primary key (crawler_id, spool_id, last_sequence)
);
create index result_seal_time on result_seal using brin (sealed_at);

------------------------------------------------------------------------------ search, web graph

-- Words as people write them, for "did you mean": from titles, headings and first words of the pages.
create table search_word (
  word text collate "C" not null,
  language text not null default '',         -- of the pages; '': not known
  -- Pages that had it in the upkeep's latest round, and half of what it was before: what is gone fades.
  pages real not null,
  round integer not null,
  -- The word with none and with one of its letters left out: words one slip apart share one of these.
  deletes text[] not null,
  primary key (word, language)
) with (fillfactor = 80);
create index search_word_deletes on search_word using gin (deletes) with (fastupdate = off);

-- How far the upkeep has come on its way through the pages, by key. One row.
create table search_upkeep (
  only_row boolean primary key default true check (only_row),
  host_hash bigint,                          -- the last page looked at; null: a round begins
  url_hash bigint,
  round integer not null default 1,
  round_finished_at timestamptz,             -- the one before
  standings jsonb not null default '{}',     -- of this round: standing → pages
  least_standing smallint not null default 0, -- from which a page belongs to the first tier
  words integer not null default 0
);
insert into search_upkeep default values;

-- PageRank of the URLs that the frontier holds, as last computed; over all nodes of the graph it sums up to 1.
create table url_rank (
  host_hash bigint not null,
  url_hash bigint not null,
  page_rank real not null,
  ranked_at timestamptz not null,
  primary key (host_hash, url_hash)
) partition by hash (host_hash);

-- Degrees and top lists of the whole graph (web-graph/summary), for pages that cannot wait for a count.
create table graph_summary (
  made_at timestamptz primary key,
  summary jsonb not null
);

------------------------------------------------------------------------------ changes

-- The change feed: what visits found new, changed or gone, in an order that can be read by cursor. Results write into
-- the inbox, in their own transaction. One appender at a time (it holds the row of change_feed) takes committed rows
-- out of it, gives them the next numbers and puts them into the feed: numbers are committed in their order, with
-- nothing missing below the last one. A number from a sequence would not do: a later one may be committed first, and
-- whoever has read that far would never see the earlier one.

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

------------------------------------------------------------------------------ channels, recrawl

-- Channels (SARSS section 2.1): a host, a directory of a host, or a set of directories of a host, with what is crawled
-- of it. A host without a channel is crawled as the scope says.
create table channel (
  channel_id integer primary key generated always as identity,
  host_hash bigint not null,
  host text collate "C" not null,
  directories text[] not null,               -- '/': the whole host
  seeds text[] not null default '{}',
  include text[] not null default '{}',      -- patterns of path and query: * anything, $ the end
  exclude text[] not null default '{}',
  max_depth smallint,                        -- links from a seed; null: the scope's
  created_at timestamptz not null,
  -- Pages that the index has of it: what its next crawl will bring, as the paper has it "according to historical record".
  expected_pages integer not null default 0,
  counted_at timestamptz,
  -- Whether every URL that the frontier had before it is in line with it.
  settled boolean not null default false,
  -- Digests of its latest pages, hex, which go with its leases, so that a text that is known under another URL does not
  -- travel; the coordinator packs them (protocol/known-digests).
  known_digests text[] not null default '{}',
  -- Counts how often they were read: sets of different turns err on different digests.
  known_turn integer not null default 0,
  -- Share of its pages whose body another of its pages has, too.
  duplicate_share real not null default 0
);
create index channel_host on channel (host_hash);
create index channel_unsettled on channel (channel_id) where not settled;
-- Whether any channel knows texts, which is asked for each request.
create index channel_known on channel (host_hash) where duplicate_share > 0;

-- One row for each time that the intervals were made anew; the newest is in force.
create table recrawl_plan (
  plan_id integer primary key generated always as identity,
  made_at timestamptz not null,
  strategy text not null,
  -- Why it was made, or why nothing else could be, in words.
  reason text not null,
  -- recrawl/recrawl-plan: multiplier, groups, capacity, planned and achieved rates.
  plan jsonb not null
);

-- What each host has in the plan that is in force: a host with configured channels has a row for each of them, and one for
-- its pages that lie in none.
create table recrawl_host (
  host_hash bigint not null,
  -- Mean of its pages' estimated changes a day, and how many pages that is.
  changes_per_day real not null,
  pages integer not null,
  recrawl_group smallint,                    -- 0: changes most often; null: not in one yet
  multiplier double precision,               -- larger than the plan's, where the host is asked as often as it may be
  -- Since the last plan that measured them: mean time between a page's fetches, and to download all of its pages once.
  gap_seconds real,
  download_seconds real,
  channel_id integer not null default 0,     -- 0: the host's pages in no channel
  primary key (host_hash, channel_id)
) partition by hash (host_hash);

------------------------------------------------------------------------------ trust

-- A page that others fetch again. Nothing of it goes into the index: it is compared and forgotten.
create table double_check (
  check_id bigint primary key generated always as identity,
  host_hash bigint not null,
  url_hash bigint not null,
  host text collate "C" not null,
  url text collate "C" not null,
  crawler_id integer not null references crawler on delete cascade,   -- who fetched it first
  cause text not null check (cause in ('sample', 'follow-up')),
  -- [{crawlerId, at, version, sketch}], the first one first; a sketch goes when all agreed.
  opinions jsonb not null,
  -- Who may give the next opinion, in no order, and until when; then it is dropped as stale.
  wanted integer[] not null,
  next_by timestamptz not null,
  lease_id bigint,                           -- under which the next one is being fetched
  verdict text check (verdict in ('agree', 'alone', 'once', 'by-place', 'by-visit', 'cannot-tell', 'stale')),
  suspect_id integer references crawler on delete cascade,
  words text not null default '',
  decided_at timestamptz
);
create unique index double_check_open on double_check (host_hash, url_hash) where verdict is null;
create index double_check_late on double_check (next_by) where verdict is null;
create index double_check_lease on double_check (lease_id) where lease_id is not null and verdict is null;
create index double_check_decided on double_check (decided_at) where verdict is not null;
create index double_check_suspect on double_check (suspect_id, decided_at) where suspect_id is not null;
-- Of a crawler's comparisons, those that came to nothing.
create index double_check_untold on double_check (crawler_id, decided_at) where verdict = 'cannot-tell';

-- What a comparison came to for one crawler, in the order of the comparisons: what the evidence is made of.
create table check_outcome (
  crawler_id integer not null references crawler on delete cascade,
  check_id bigint not null references double_check on delete cascade,
  host_hash bigint not null,
  outcome text not null check (outcome in ('agree', 'alone', 'once')),
  decided_at timestamptz not null,
  primary key (crawler_id, check_id)
);
create index check_outcome_host on check_outcome (host_hash, crawler_id);
create index check_outcome_check on check_outcome (check_id);

-- How a host's pages differ by themselves, and who stood alone on them.
create table host_disagreement (
  host_hash bigint primary key,
  agreed integer not null default 0,
  by_visit integer not null default 0,
  by_place integer not null default 0,
  suspects integer[] not null default '{}',
  bits real not null default 0,              -- of 64 bits of the simhash, at most
  links real not null default 0,             -- that only one of two fetches had, at most
  title boolean not null default false,
  silent boolean not null default false,     -- nothing can be concluded from a difference on it
  changed_at timestamptz not null
);
create index host_disagreement_silent on host_disagreement (host_hash) where silent;

create table crawler_trust (
  crawler_id integer primary key references crawler on delete cascade,
  pages bigint not null default 0,           -- fetched under leases, since the comparisons began
  watched_until_page bigint not null default 0,
  score real not null default 0,             -- of the evidence against its results, when it was last weighed
  -- Nothing before this counts: an operator has restored it.
  restored_at timestamptz,
  distrusted_at timestamptz,
  distrust_words text,
  -- Its probe reports are not believed.
  probes_doubted_at timestamptz,
  probes_words text
);

------------------------------------------------------------------------------ federation

-- Coordinators under coordinators (WEB-SAILOR section 4.4): who is above and below, what each owns, and the URLs that
-- belong to others, with the numbers that make what is sent twice count once.

-- Made at the first start, not here: copies of a migrated database must not take each other for themselves.
create table coordinator_self (
  only_one boolean primary key default true check (only_one),
  coordinator_id uuid not null,
  -- The claims by which the frontier and foreign_url were last gone through, and how far that has come; null: done.
  settled_claims text,
  host_cursor bigint,
  url_cursor_host bigint,
  url_cursor_url bigint,
  settling_waits boolean not null default false -- something had to wait while claims were settled
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

------------------------------------------------------------------------------ opt-outs

-- Who opted out what. In force from `in_force_at` to `ended_at`; unconfirmed ones lapse.
create table opt_out (
  opt_out_id integer primary key generated always as identity,
  -- A domain with everything below it, or a network (operators only).
  site text collate "C",
  first_address inet,
  last_address inet,
  source text not null check (source in ('form', 'operator')),
  -- Published by the site in DNS to confirm; no secret.
  token text collate "C" not null,
  words text not null default '',            -- what the requester says
  reply_to text,                             -- where the requester can be reached, if told
  requester inet,                            -- where the form was sent from
  created_at timestamptz not null,
  in_force_at timestamptz,                   -- null: waits for a confirmation, since too many came at once
  lapses_at timestamptz,                     -- null: does not
  confirmed_at timestamptz,
  confirmed_by text check (confirmed_by in ('site', 'operator')),
  looked_at timestamptz,                     -- when DNS was last asked for the confirmation
  ended_at timestamptz,
  ending text check (ending in ('lifted', 'lapsed')),
  ending_words text not null default '',
  -- The frontier is in line with this row up to here: 0 not yet, 1 hosts marked, 2 their pages deleted, 3 marks gone.
  applied smallint not null default 0,
  check ((site is null) = (first_address is not null)),
  check ((first_address is null) = (last_address is null)),
  check (family(first_address) = family(last_address) and first_address <= last_address)
);
-- One open request a site or network, whatever collides.
create unique index opt_out_site on opt_out (site) where ended_at is null and site is not null;
create unique index opt_out_network on opt_out (first_address, last_address) where ended_at is null and site is null;
create index opt_out_created on opt_out (created_at);

-- Reports of trouble, with what we did to the target when they came.
create table complaint (
  complaint_id integer primary key generated always as identity,
  target text collate "C" not null,          -- as it was given
  site text collate "C",                     -- the target as a domain with everything below it
  first_address inet,                        -- or as a network
  last_address inet,
  source text not null check (source in ('form', 'operator')),
  reporter text not null,                    -- who complains, as told
  words text not null,
  requester inet,
  created_at timestamptz not null,
  deeds jsonb not null,                      -- opt-outs/complaints.ts: what we did to the target then
  closed_at timestamptz,
  closing_words text,
  check ((site is null) <> (first_address is null))
);
create index complaint_created on complaint (created_at);
create index complaint_site on complaint (site) where site is not null;

------------------------------------------------------------------------------ submissions

-- URLs that people hand in: a receipt with an answer for each, kept for 90 days.
create table submission (
  submission_id bigint primary key generated always as identity,
  deed text not null check (deed in ('add', 'recrawl')),
  submitted_by text not null,
  submitted_at timestamptz not null,
  new_urls integer not null default 0,
  known_urls integer not null default 0,
  elsewhere_urls integer not null default 0,
  refused_urls integer not null default 0
);
create index submission_at on submission (submitted_at);

create table submission_url (
  submission_id bigint not null references submission on delete cascade,
  place integer not null,                    -- line or position in what was handed in, from 1
  url text collate "C" not null,             -- canonical; where it has no key as it was given, cut at 500 characters
  host_hash bigint,                          -- null: it has no key
  url_hash bigint,
  answer text not null check (answer in ('new', 'known', 'elsewhere', 'refused')),
  reason text,                               -- of what is refused or of another coordinator
  primary key (submission_id, place)
);

------------------------------------------------------------------------------ access

create table operator_token (
  token_id integer primary key generated always as identity,
  name text not null unique,
  token_hash text not null unique,           -- SHA-256, hex
  scopes text[] not null check (
    cardinality(scopes) > 0
    and scopes <@ '{read,url-write,metrics-read,fleet-read,fleet-write,registry-write,policy-write,audit-read,access-write}'
  ),
  created_at timestamptz not null,
  expires_at timestamptz,
  last_used_at timestamptz,
  revoked_at timestamptz
);

-- Append-only: nothing of ours updates or deletes a row.
create table audit_entry (
  entry_id bigint primary key generated always as identity,
  at timestamptz not null,
  actor text not null,                       -- 'anna', 'token dashboard', 'root on db1', 'coordinator'
  via text not null check (via in ('page', 'api', 'command', 'coordinator')),
  action text not null,
  target text,
  words text not null,
  -- Small JSON without secrets; null: nothing to tell.
  before jsonb,
  after jsonb,
  remote_address text
);
create index audit_entry_at on audit_entry (at);
create index audit_entry_actor on audit_entry (actor, entry_id);
create index audit_entry_action on audit_entry (action, entry_id);
create index audit_entry_target on audit_entry (target, entry_id);

-- Links that sign somebody in once. The secret is kept as its SHA-256 (hex).
create table sign_in_link (
  link_id integer primary key generated always as identity,
  link_hash text not null unique,
  name text not null,
  role text not null check (role in ('partner', 'staff', 'operator')),
  crawlers text[] not null default '{}',     -- those that a partner hosts, by name
  issued_by text not null,
  issued_at timestamptz not null,
  expires_at timestamptz not null,
  used_at timestamptz,
  revoked_at timestamptz
);
create index sign_in_link_expires on sign_in_link (expires_at);

-- A row is a session that has not been ended; it is good until ends_at, and while it is used.
create table web_session (
  session_id integer primary key generated always as identity,
  session_hash text not null unique,         -- SHA-256 (hex) of what the cookie holds
  name text not null,
  role text not null check (role in ('partner', 'staff', 'operator')),
  crawlers text[] not null default '{}',
  issued_by text not null,                   -- who had issued the link
  started_at timestamptz not null,
  last_used_at timestamptz not null,
  ends_at timestamptz not null,
  remote_address text,                       -- where it was used last, and with what
  user_agent text not null default '',
  said text                                  -- what the last action has to say, until a page has shown it
);
create index web_session_name on web_session (name);
create index web_session_ends on web_session (ends_at);

------------------------------------------------------------------------------ releases

-- The keys that the fleet trusted first, raw Ed25519 in base64url; rotations carry on from there.
create table release_key (
  public_key text primary key,
  added_at timestamptz not null
);
create table release_key_rotation (
  sequence bigint primary key,
  signed text not null,                      -- the envelope, as it is served (protocol/release-envelope.ts)
  published_at timestamptz not null
);
-- Each is the whole list of its time; the one with the highest number is in force.
create table release_revocation (
  sequence bigint primary key,
  signed text not null,
  digests text[] not null,
  reason text not null,
  published_at timestamptz not null
);
-- A signed statement of the newest release and list of revoked ones, good for days, which supervisors insist on. The newest
-- one alone.
create table release_timestamp (
  sequence bigint primary key,
  signed text not null,                      -- the envelope, as it is served (protocol/release-envelope.ts)
  expires_at timestamptz not null,
  published_at timestamptz not null
);

create table release_bundle (
  digest text primary key,                   -- SHA-256, hex
  bundle bytea not null
);
create table release (
  version text collate "C" primary key,
  sequence bigint not null unique,
  digest text not null references release_bundle,
  signed text not null,                      -- the manifest's envelope
  expires_at timestamptz not null,
  published_at timestamptz not null,
  -- To whom it is offered: nobody, one crawler, a share of them, all.
  stage text not null default 'none' check (stage in ('none', 'one', 'percent', 'all')),
  percent real check (percent > 0 and percent <= 100),
  first_crawler_id integer references crawler on delete set null,   -- who got it first
  stage_since timestamptz,
  stage_words text not null default '',      -- why it stands where it does
  soak_minutes integer,                      -- moves on by itself after so long in good order; null: by hand
  check ((stage = 'percent') = (percent is not null))
);

create table release_offer (
  crawler_id integer not null references crawler on delete cascade,
  version text collate "C" not null references release on delete cascade,
  offered_at timestamptz not null,
  -- What the crawler's supervisor says became of it; null: nothing yet.
  state text check (state in ('refused', 'pinned', 'delayed', 'running', 'returned')),
  reason text not null default '',
  reported_at timestamptz,
  primary key (crawler_id, version)
);

------------------------------------------------------------------------------ settings

-- What operators change of the settings while coordinators run: values that are put over those of the coordinator's file, by
-- name.
create table setting (
  name text primary key,
  value jsonb not null,
  changed_at timestamptz not null default now(),
  changed_by text not null
);

-- Who changed what, so that one can go back.
create table policy_version (
  -- Without gaps from 1 on: the latest is what a change must be based on.
  version integer primary key,
  changed_at timestamptz not null,
  changed_by text not null,
  words text not null default '',            -- why, as the operator says
  takes_back integer references policy_version,
  changes jsonb not null                     -- [{name, before, after}]; null: the file's value holds
);

-- The policies of the file of the coordinator that started last, in full, so that commands and pages know them too.
create table policy_file (
  only_one boolean primary key default true check (only_one),
  settings jsonb not null,
  stated_at timestamptz not null
);

------------------------------------------------------------------------------ overview

-- One row a minute while a coordinator runs, also when nothing happened; several coordinators add to the same row.
create table minute_figures (
  minute timestamptz primary key,
  fetches bigint not null default 0,
  pages bigint not null default 0,
  fetched_bytes bigint not null default 0,   -- decoded bodies of the pages
  shipped_bytes bigint not null default 0,   -- what all results took on the wire to here
  rounds bigint not null default 0,
  probes bigint not null default 0,
  -- Fetches that failed, by who is to blame (protocol/result.ts).
  target_failures bigint not null default 0,
  network_failures bigint not null default 0,
  crawler_failures bigint not null default 0,
  our_failures bigint not null default 0
);

-- One row a day (UTC). The sums are those of minute_figures; leases are counted as they are let go.
create table day_figures (
  day date primary key,
  minutes integer not null default 0,        -- in which somebody wrote figures
  fetches bigint not null default 0,
  pages bigint not null default 0,
  fetched_bytes bigint not null default 0,
  shipped_bytes bigint not null default 0,
  rounds bigint not null default 0,
  probes bigint not null default 0,
  target_failures bigint not null default 0,
  network_failures bigint not null default 0,
  crawler_failures bigint not null default 0,
  our_failures bigint not null default 0,
  leases_done bigint not null default 0,
  leases_expired bigint not null default 0,
  leases_returned bigint not null default 0,
  leased_urls bigint not null default 0
);

create table crawler_figures (
  quarter timestamptz not null,
  crawler_id integer not null references crawler on delete cascade,
  fetches bigint not null default 0,
  wire_bytes bigint not null default 0,      -- what its fetches took at the partner, as its day's budget counts
  target_failures bigint not null default 0,
  network_failures bigint not null default 0,
  crawler_failures bigint not null default 0,
  our_failures bigint not null default 0,
  primary key (quarter, crawler_id)
);

-- A delegated subnet that every crawler measured at one moment, to see whether its crawler is (nearly) the nearest.
create table accuracy_sample (
  sample_id bigint primary key generated always as identity,
  subnet_id integer not null references subnet,
  target_address inet not null,
  target_host text collate "C" not null,
  method text not null,
  owner_id integer not null references crawler on delete cascade,
  owner_rtt_ms real,                         -- null: it got no answer
  best_id integer references crawler on delete cascade,   -- null: nobody got one
  best_rtt_ms real,
  asked integer not null,                    -- crawlers, the owner among them
  answered integer not null,
  sampled_at timestamptz not null
);
create index accuracy_sample_time on accuracy_sample (sampled_at);
create index accuracy_sample_target on accuracy_sample (target_address, sampled_at);

-- What went wrong at the coordinator's edge, by crawler, kind and hour.
create table incident (
  incident_id bigint primary key generated always as identity,
  crawler_id integer references crawler on delete cascade,   -- null: nobody knows who it was
  kind text not null check (kind ~ '^[a-z]+(-[a-z0-9]+)*$'),
  hour timestamptz not null,
  incidents bigint not null,
  first_at timestamptz not null,
  last_at timestamptz not null,
  words text not null,                       -- of the last one
  remote_address text
);
create unique index incident_of_hour on incident (coalesce(crawler_id, 0), kind, hour);
create index incident_last on incident (last_at);

-- Alerts that somebody has seen and wants to hear no more of until an hour that is named.
create table alert_mute (
  name text not null,                        -- of the rule
  target text not null default '',           -- a crawler or release; empty: all of the rule
  until timestamptz not null,
  reason text not null,
  muted_by text not null,
  muted_at timestamptz not null,
  primary key (name, target)
);

------------------------------------------------------------------------------ parts

-- Reading and ranking unpack what is compressed: lz4 takes a third of the time. A server that was built without it keeps its
-- own way.
do $$
begin
  alter table page alter column lexemes set compression lz4;
  alter table out_link alter column anchors set compression lz4;
  alter table held_urls alter column urls set compression lz4;
exception when feature_not_supported then
  null;
end $$;

-- Parts take over their table's indexes and how its columns are stored. Hosts and URLs that are changed again and again have
-- room beside them, so that most changes touch one page of the table and no index. What page_links holds is packed already:
-- trying again would cost time and win nothing.
do $$
declare
  parted text;
begin
  foreach parted in array array[
    'frontier_host', 'frontier_url', 'page', 'text_band', 'out_link', 'page_links', 'url_rank', 'page_change', 'recrawl_host'
  ] loop
    for part in 0..7 loop
      execute format('create table %I partition of %I for values with (modulus 8, remainder %s)',
        parted || '_' || part, parted, part);
    end loop;
  end loop;
  for part in 0..7 loop
    execute format('alter table frontier_host_%s set (fillfactor = 80)', part);
    execute format('alter table frontier_url_%s set (fillfactor = 90)', part);
    execute format('alter table page_links_%s alter column adjacency set storage external', part);
  end loop;
end $$;

-- Down Migration
-- None: nothing lies below the foundation.
