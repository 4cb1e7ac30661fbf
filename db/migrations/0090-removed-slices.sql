-- needs: nothing
-- tables: shared
-- Slices are taken out of the list (nearcrawl slices remove). Their rows stay, so that no number is given twice, and readers of
-- changes who have read all of a slice are not told that they missed some.

-- Up Migration

alter table web_slice
  drop constraint web_slice_state_check,
  add constraint web_slice_state_check check (state in ('preparing', 'active', 'draining', 'removing', 'removed')),
  add column feed_last bigint,               -- of a slice that is removed: the number of its last change; null: nobody knows
  add column removed_at timestamptz,
  drop constraint web_slice_server_url_schema_name_key;
create unique index web_slice_place on web_slice (server_url, schema_name) nulls not distinct where state <> 'removed';

-- Down Migration

drop index web_slice_place;
delete from slice_move where from_slice in (select slice_number from web_slice where state = 'removed')
  or to_slice in (select slice_number from web_slice where state = 'removed');
delete from web_slice where state = 'removed';
alter table web_slice
  drop constraint web_slice_state_check,
  add constraint web_slice_state_check check (state in ('preparing', 'active', 'draining')),
  drop column feed_last,
  drop column removed_at,
  add unique nulls not distinct (server_url, schema_name);
