-- Pages that people keep under names of their own. Old coordinators may still run; they show none.
-- needs: nothing

-- Up Migration

create table saved_view (
  view_id bigint primary key generated always as identity,
  -- Who signed in: a name with its role, as sessions have them.
  owner_name text not null,
  owner_role text not null check (owner_role in ('partner', 'staff', 'operator')),
  name text not null check (char_length(name) between 1 and 60),
  path text not null check (path like '/%' and char_length(path) <= 501),  -- of a page here, with its query
  saved_at timestamptz not null,
  unique (owner_name, owner_role, name)
);

-- Down Migration

drop table saved_view;
