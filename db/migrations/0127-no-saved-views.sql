-- Saved views go: a page's address holds its filters, and browsers keep addresses under names. What people saved goes to the audit log,
-- one entry a person. Older coordinators read the table with every account page and every look-up of the box.
-- needs: all coordinators stopped

-- Up Migration

do $$
begin
  if exists (select from saved_view) then
    raise notice 'dropping % saved views of % people; the audit log has them (nearcrawl audit --action saved-views-ended)',
      (select count(*) from saved_view), (select count(distinct (owner_name, owner_role)) from saved_view);
  end if;
end $$;

insert into audit_entry (at, actor, via, action, target, words, before)
select now(), 'coordinator', 'coordinator', 'saved-views-ended', owner_name,
  'Saved views are no more; those of ' || owner_name || ' (' || owner_role || ') were these.',
  jsonb_object_agg(name, path order by name)
from saved_view
group by owner_name, owner_role;

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
