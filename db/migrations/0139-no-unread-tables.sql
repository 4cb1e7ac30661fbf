-- What pages linked to at earlier visits was kept, up to five visits of each, and nothing ever read it: ranks and the graph go by the latest links,
-- and how much of them changed is reckoned as a visit is stored. Crawlers found it, nobody entered it; the fetches of each page stay.
-- Seals, which are verified as results arrive, were kept for a week with digests of bytes that nobody has any more: nothing could be shown by them.
-- needs: all coordinators stopped

-- Up Migration

do $$
begin
  raise notice 'dropping table page_links (% rows or so): what pages linked to at earlier visits',
    (select coalesce(sum(greatest(c.reltuples, 0)), 0)::bigint from pg_inherits i join pg_class c on c.oid = i.inhrelid
     where i.inhparent = 'page_links'::regclass);
end
$$;

drop table page_links;
drop table result_seal;

-- Down Migration

create table page_links (
  host_hash bigint not null,
  url_hash bigint not null,
  visit integer not null,
  visited_at timestamptz not null,
  link_count integer not null,
  adjacency bytea not null,
  primary key (host_hash, url_hash, visit)
) partition by hash (host_hash);

do $$
begin
  for part in 0..7 loop
    execute format('create table page_links_%s partition of page_links for values with (modulus 8, remainder %s)', part, part);
    execute format('alter table page_links_%s alter column adjacency set storage external', part);
  end loop;
end
$$;

create table result_seal (
  crawler_id integer not null references crawler on delete cascade,
  spool_id uuid not null,
  first_sequence bigint not null,
  last_sequence bigint not null,
  digest bytea not null,
  signature bytea not null,
  sealed_at timestamptz not null,
  primary key (crawler_id, spool_id, last_sequence)
);
create index result_seal_time on result_seal using brin (sealed_at);
