-- URLs that were given to the crawler and have no place in the frontier, with the reason.
-- Old coordinators keep running: they never touch this table.
-- Up Migration

create table rejected_url (
  url text primary key,                      -- as it was given, cut at 500 characters
  reason text not null,
  source text not null,                      -- 'operator', or the page that linked to it
  first_seen_at timestamptz not null default now(),
  times integer not null default 1
);

-- Down Migration
