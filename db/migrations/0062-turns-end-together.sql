-- Turns at addresses end once for all leases that end at a time, as they begin: one by one, it was most of what it takes to
-- close them. Both look addresses up by key, however few the table has. Nor is the crawler of each lease looked up and
-- locked once more: a lease is written for those that the same statement read, and no crawler is ever deleted.
-- Old coordinators: run on.
-- Up Migration

create or replace function address_turns_begin() returns trigger language plpgsql as $$
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
create function address_turns_ended() returns trigger language plpgsql as $$
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

alter table lease drop constraint lease_crawler_id_fkey;

drop trigger address_turns_end on lease;
create trigger address_turns_end after update on lease
  referencing old table as leases_before new table as leases_after
  for each statement execute function address_turns_ended();

-- Down Migration

alter table lease add constraint lease_crawler_id_fkey foreign key (crawler_id) references crawler;
drop trigger address_turns_end on lease;
create trigger address_turns_end after update on lease
  for each row when (old.closed_at is null and new.closed_at is not null and old.addresses <> '{}')
  execute function address_turns_end();
drop function address_turns_ended();
create or replace function address_turns_begin() returns trigger language plpgsql as $$
begin
  update address_turn t
  set leases = t.leases + n.leases
  from (
    select address, count(*)::int as leases
    from given_leases, unnest(addresses) as address
    where closed_at is null
    group by address
  ) n
  where t.address = n.address;
  return null;
end $$;
