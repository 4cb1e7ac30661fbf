-- What the overview shows of the past: figures by minute, figures of each crawler by quarter of an hour, and samples
-- of how near the delegations are.
-- Old coordinators: run on. They write none of it, so what comes in through them is missing from these figures.
-- Up Migration

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

-- Down Migration
