-- needs: nothing
-- Which pages of the index were written, changed or deleted, for whoever keeps an index of them in memory (search/memory).
-- Triggers write it, so old coordinators do, too.

-- Up Migration

-- A row for each statement. Who has read up to a snapshot reads on with what that snapshot could not see: a transaction that
-- took long is not missed, as it would be by a number from a sequence or by the clock.
create table page_touch (
  transaction xid8 not null default pg_current_xact_id(),
  host_hashes bigint[] not null,
  url_hashes bigint[] not null               -- beside the host hashes
);
create index page_touch_transaction on page_touch (transaction);

create function note_touched_pages() returns trigger language plpgsql as $$
begin
  insert into page_touch (host_hashes, url_hashes)
  select array_agg(host_hash), array_agg(url_hash) from touched having count(*) > 0;
  return null;
end
$$;
create trigger page_touched_by_insert after insert on page
  referencing new table as touched for each statement execute function note_touched_pages();
create trigger page_touched_by_update after update on page
  referencing new table as touched for each statement execute function note_touched_pages();
create trigger page_touched_by_delete after delete on page
  referencing old table as touched for each statement execute function note_touched_pages();

-- Down Migration

drop trigger page_touched_by_delete on page;
drop trigger page_touched_by_update on page;
drop trigger page_touched_by_insert on page;
drop function note_touched_pages;
drop table page_touch;
