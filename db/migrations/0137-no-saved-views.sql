-- Saved views are gone: a page with its filters is an address, which browsers keep as a bookmark. What people saved stays in the audit log, with
-- names and paths, for as long as that is kept.
-- needs: all coordinators stopped

-- Up Migration

insert into audit_entry (at, actor, via, action, target, words, before)
select now(), 'migration 0137', 'command', 'saved-views-dropped', owner_name,
  'Saved views are gone; these were ' || owner_name || '''s (' || owner_role || ').',
  jsonb_agg(jsonb_build_object('name', name, 'path', path) order by name)
from saved_view
group by owner_name, owner_role;

do $$
begin
  raise notice 'dropping table saved_view; its % rows are in the audit log (action saved-views-dropped)', (select count(*) from saved_view);
end
$$;

drop table saved_view;

-- Down Migration

create table saved_view (
  view_id bigint primary key generated always as identity,
  owner_name text not null,
  owner_role text not null check (owner_role in ('partner', 'staff', 'operator')),
  name text not null check (char_length(name) between 1 and 60),
  path text not null check (path like '/%' and char_length(path) <= 501),
  saved_at timestamptz not null,
  unique (owner_name, owner_role, name)
);
