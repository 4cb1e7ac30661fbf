-- What went wrong at the coordinator's edge: incidents by crawler, kind and hour; the seals under which results
-- were taken.
-- Old coordinators: run on. They record no incidents and take results without seals.
-- Up Migration

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

-- Down Migration
