-- Parts of subnets no longer have crawlers of their own: a subnet is the finest that registries know, and no measurement showed what its
-- parts were worth (ops/decisions/0045-what-went.md). Their hosts go with their subnets again, which the history says. Nobody entered
-- them: they came from connect times. Hosts that are delegated one by one stay as they are. Older coordinators read the dropped columns.
-- needs: all coordinators stopped

-- Up Migration

do $$
begin
  if exists (select from finer_delegation where host_hash is null) then
    raise notice '% parts of subnets go with their subnets again',
      (select count(*) from finer_delegation where host_hash is null);
  end if;
end $$;

update frontier_host h
set finer_id = null
from finer_delegation f
where f.finer_id = h.finer_id and f.host_hash is null;

with ended as (
  delete from finer_delegation
  where host_hash is null
  returning subnet_id, crawler_id
)
insert into delegation_history (subnet_id, changed_at, from_crawler_id, to_crawler_id, cause, reason)
select ended.subnet_id, now(), ended.crawler_id, d.crawler_id, 'joined-again', 'parts of subnets have no crawlers of their own any more'
from ended
left join delegation d using (subnet_id);

alter table finer_delegation drop column first_address, drop column last_address;
alter table finer_delegation alter column host_hash set not null;

-- Down Migration

alter table finer_delegation alter column host_hash drop not null;
alter table finer_delegation add column first_address inet, add column last_address inet,
  add check (num_nonnulls(host_hash, first_address) = 1),
  add check (num_nonnulls(first_address, last_address) <> 1),
  add check (first_address is null or family(first_address) = family(last_address) and first_address <= last_address);
create unique index finer_delegation_part on finer_delegation (subnet_id, first_address) where host_hash is null;
