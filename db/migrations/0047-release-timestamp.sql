-- A signed statement of the newest release and list of revoked ones, good for days, which supervisors insist on.
-- Old coordinators: run on; they serve no statement, and supervisors that know one take no release from them.
-- Up Migration

-- The newest one alone.
create table release_timestamp (
  sequence bigint primary key,
  signed text not null,                      -- the envelope, as it is served (protocol/release-envelope.ts)
  expires_at timestamptz not null,
  published_at timestamptz not null
);

-- Down Migration

drop table release_timestamp;
