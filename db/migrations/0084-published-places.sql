-- Where networks publish that their ranges lie: geofeeds (RFC 8805) and the clouds' lists of ranges by region, as imports
-- brought them. Old coordinators may still run; they use none of it.
-- needs: nothing

-- Up Migration

-- What one list said. Rows never change: an import that finds the list changed writes another one, so that each
-- generation keeps its own, and a rollback has nothing to put back.
create table published_list (
  list_id integer primary key generated always as identity,
  source text not null,                      -- 'aws', 'geofeed https://example.net/geofeed.csv'
  kind text not null check (kind in ('geofeed', 'aws', 'google', 'azure', 'oracle', 'cloudflare')),
  is_named_by_objects boolean not null,      -- a geofeed that registry objects name (RFC 9632)
  digest text not null,                      -- SHA-256 of its ranges and places, hex
  ranges integer not null
);

create index published_list_source on published_list (source);

create table published_range (
  list_id integer not null references published_list on delete cascade,
  first_address inet not null,
  last_address inet not null,
  place text,                                -- null: the list names no single place for it
  within_range text                          -- of the registry object that names the geofeed
);

create index published_range_list on published_range (list_id);
create index published_range_addresses on published_range (first_address, last_address);

-- The lists of a generation, and how old each was then.
create table published_list_in (
  generation integer not null references registry_generation on delete cascade,
  list_id integer not null references published_list on delete cascade,
  list_date date,
  version text,                              -- the list's own number or token
  primary key (generation, list_id)
);

create index published_list_in_list on published_list_in (list_id);

-- Down Migration

drop table published_list_in;
drop table published_range;
drop table published_list;
