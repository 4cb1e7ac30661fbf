-- What lets hosts lie in several databases.
-- Turns at addresses (address_turn) are counted by statements of the coordinator (frontier/address-turn-writes.ts) in place of
-- triggers on table lease, so that leases may lie in another database than turns. Old coordinators, which leave it to the
-- triggers, would let two crawlers ask one address at a time.
-- needs: all coordinators stopped
-- Up Migration

drop trigger address_turns_begin on lease;
drop trigger address_turns_end on lease;
drop trigger address_turns_vanish on lease;
drop function address_turns_begin();
drop function address_turns_ended();
drop function address_turns_end();

-- When the turn is over, whatever it counts: the latest of its leases would have run out, and its address has rested. It may
-- count leases that were never written, or have ended, where a coordinator was killed between the two.
alter table address_turn add column expires_at timestamptz not null default '-infinity';

update address_turn t
set expires_at = open.expires_at + make_interval(secs => t.rest_seconds * 6)
from (
  select address, max(expires_at) as expires_at
  from lease, unnest(addresses) as address
  where closed_at is null
  group by address
) open
where t.address = open.address;

-- Numbers that are given where hosts lie are wide enough for each database to have a range of its own; those of leases, comparisons,
-- outbox and inbox were before.
alter table channel alter column channel_id type bigint;
alter table recrawl_host alter column channel_id type bigint;

-- Down Migration
-- None: a program that counts by triggers would find turns that nobody ends.
