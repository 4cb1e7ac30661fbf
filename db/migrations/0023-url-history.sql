-- What a URL's visits found: how often its content had changed and over how much time (for its change rate), how many
-- links it has and how many of them changed (for its place in the order of the frontier).
-- Old coordinators: run on. They leave the columns as they are, so that visits under them count for nothing here.
-- Up Migration

alter table frontier_url
  -- Visits whose content could be compared with the one before, and how many of them found it changed.
  add column compared_visits integer not null default 0,
  add column content_changes integer not null default 0,
  -- Time between a compared visit and the one before it, in all: of visits that found a change, and that found none.
  add column changed_seconds real not null default 0,
  add column unchanged_seconds real not null default 0,
  -- Estimated changes a day (recrawl/change-rate); null: not known.
  add column changes_per_day real,
  -- Links on the page as last visited, and the share of links that the last two visits do not have in common; null: not
  -- visited, or once only.
  add column out_links integer,
  add column change_ratio real;

-- Whether the fetch found other content than the one before it; null: nothing to compare with.
alter table page_fetch add column changed boolean;

-- Down Migration
