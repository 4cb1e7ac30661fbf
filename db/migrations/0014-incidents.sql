-- What went wrong at the coordinator's edge: incidents by crawler, kind and hour; the seals under which results
-- were taken; and which crawler has the turn at an address, so that no two ask the same one at a time.
-- Old coordinators: run on. They record no incidents, take results without seals, and lease hosts without asking
-- whose turn their addresses are.
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

-- What counts as one address, as crawlers see it: an IPv4 address, or the /64 that one subscriber has (RFC 6177).
create function address_key(address inet) returns cidr language sql immutable parallel safe
  return network(set_masklen(address, case family(address) when 4 then 32 else 64 end));

-- The addresses of a lease's host when it began, none of a lease that began before this migration.
alter table lease add column addresses cidr[] not null default '{}';
alter table frontier_host
  -- Addresses that two crawlers were led to by the host's name and that our own resolver did not name, the latest first.
  add column seen_addresses inet[] not null default '{}',
  -- What one crawler alone said so far, and which: counts for nothing until another one says it.
  add column reported_addresses inet[] not null default '{}',
  add column reported_by integer[] not null default '{}';

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

create function address_turns_begin() returns trigger language plpgsql as $$
begin
  update address_turn set leases = leases + 1 where address = any(new.addresses);
  return null;
end $$;

-- A crawler that lost its lease may be in the middle of a request, which takes a minute at most.
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
  for each row when (new.closed_at is null and new.addresses <> '{}')
  execute function address_turns_begin();
create trigger address_turns_end after update on lease
  for each row when (old.closed_at is null and new.closed_at is not null and old.addresses <> '{}')
  execute function address_turns_end();
create trigger address_turns_vanish after delete on lease
  for each row when (old.closed_at is null and old.addresses <> '{}')
  execute function address_turns_end();

-- Down Migration
