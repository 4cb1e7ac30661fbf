-- Coordinators own domain sets, and no blocks of addresses any more. What a child claimed stays in its row; where it names blocks it counts
-- for nothing until the child starts with domains. The column told which hosts a parent had looked up by their address.
-- needs: all coordinators stopped

-- Up Migration

do $$
declare names text;
begin
  select string_agg(name, ', ' order by name) into names from related_coordinator where array_to_string(claims, ' ') like '%/%';
  if names is not null then
    raise notice 'coordinators that own blocks of addresses, which counts no more: %; set domains in parent.owns of each', names;
  end if;
end
$$;

alter table frontier_host drop column given;

-- Down Migration

alter table frontier_host add column given boolean not null default false;
