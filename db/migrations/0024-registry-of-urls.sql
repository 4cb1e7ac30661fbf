-- Hosts and URLs that are changed again and again have room beside them, so that most changes touch one page of the
-- table and no index; and a crawler's subnets can be gone through in turn. What a lease does to the turns at its
-- addresses is as before. A host counts what it has no room for.
-- Old coordinators: run on. Rows that are there already get room as they are changed.
-- Up Migration

do $$
begin
  for part in 0..7 loop
    execute format('alter table frontier_host_%s set (fillfactor = 80)', part);
    execute format('alter table frontier_url_%s set (fillfactor = 90)', part);
  end loop;
end $$;

create index delegation_turn on delegation (crawler_id, subnet_id);
drop index delegation_crawler;

-- Turns at addresses begin once for all leases that are given at a time, and no longer one by one.
drop trigger address_turns_begin on lease;
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
create trigger address_turns_begin after insert on lease
  referencing new table as given_leases
  for each statement execute function address_turns_begin();

-- URLs that came when the host had no room for them, not even held: counted each time that a batch names them.
alter table frontier_host add column left_out_urls bigint not null default 0;

-- Down Migration
