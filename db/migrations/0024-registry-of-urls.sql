-- Hosts and URLs that are changed again and again have room beside them, so that most changes touch one page of the
-- table and no index; and a crawler's subnets can be gone through in turn.
-- Old coordinators: run on. Rows that are there already get room as they are changed.
-- Up Migration

do $$
begin
  for part in 0..7 loop
    execute format('alter table frontier_host_%s set (fillfactor = 80)', part);
    execute format('alter table frontier_url_%s set (fillfactor = 90)', part);
  end loop;
end $$;

create index delegation_turn on delegation (crawler_id, subnet_id);
drop index delegation_crawler;

-- Down Migration
