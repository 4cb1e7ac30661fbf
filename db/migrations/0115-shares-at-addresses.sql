-- The time of an address is shared between registrable domains: what each has leased there, and for how long its hosts worked. Old
-- coordinators may still run: they count neither, and what they begin is no domain's until the address's next turn.
-- needs: nothing
-- tables: shared

-- Up Migration

alter table address_turn
  -- Registrable domain → open leases of this turn.
  add column open_leases jsonb not null default '{}',
  -- Registrable domain → ms that answers of its hosts took, halved every ten minutes; '': of all domains.
  add column used_ms jsonb not null default '{}',
  add column used_at timestamptz not null default '-infinity';   -- when they were added to last

-- Sums by key, those of `known` weighted; what comes to nothing is left out, and so are the smallest beyond the 200 largest.
create function sums_by_key(known jsonb, added jsonb, weight double precision) returns jsonb
language sql immutable parallel safe
as $$
  select coalesce(jsonb_object_agg(key, total), '{}')
  from (
    select key, round(sum(value)) as total
    from (
      select key, value::double precision * weight as value from jsonb_each_text(known)
      union all
      select key, value::double precision from jsonb_each_text(added)
    ) both_of_them
    group by key
    having round(sum(value)) > 0
    order by total desc
    limit 200
  ) largest
$$;

-- Down Migration

drop function sums_by_key;
alter table address_turn
  drop column used_at,
  drop column used_ms,
  drop column open_leases;
