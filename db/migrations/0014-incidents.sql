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

-- Down Migration
