-- needs: nothing
-- tables: slice
-- Where a database went back, each slice's numbers go on behind all that it may have given, and say from where to where they
-- jumped: readers of its changes ask it, and not the epochs of the shared tables, which have slice 0's numbers alone.

-- Up Migration

alter table change_feed
  add column epoch integer not null default 1,           -- the one whose numbers it gives
  add column jumps jsonb not null default '[]';          -- [{"from", "to", "at"}], in their order
do $$
begin
  if to_regclass('database_epoch') is not null then
    update change_feed
    set epoch = (select coalesce(max(epoch), 1) from database_epoch),
        jumps = (
          select coalesce(jsonb_agg(jsonb_build_object('from', feed_last_before, 'to', feed_begins, 'at', began_at)
            order by epoch), '[]')
          from database_epoch
          where feed_begins > 0
        );
  end if;
end $$;

-- Down Migration

alter table change_feed drop column epoch, drop column jumps;
