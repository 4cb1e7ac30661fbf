-- The web graph beyond the links of today: what each page linked to when it was visited, what rank its pages have, and
-- how the whole looked when somebody counted it.
-- Old coordinators: run on. Visits under them leave no row in page_links, and frontier_url.change_ratio as it is.
-- Up Migration

-- The latest visits of a page that found its links changed, the latest one whole, the others as what differs from the
-- one after them (core/link-set).
create table page_links (
  host_hash bigint not null,
  url_hash bigint not null,
  visit integer not null,                    -- 1: the URL's first; counted, since clocks jump
  visited_at timestamptz not null,
  link_count integer not null,
  adjacency bytea not null,
  primary key (host_hash, url_hash, visit)
) partition by hash (host_hash);

-- PageRank of the URLs that the frontier holds, as last computed; over all nodes of the graph it sums up to 1.
create table url_rank (
  host_hash bigint not null,
  url_hash bigint not null,
  page_rank real not null,
  ranked_at timestamptz not null,
  primary key (host_hash, url_hash)
) partition by hash (host_hash);

do $$
begin
  for part in 0..7 loop
    execute format('create table page_links_%s partition of page_links for values with (modulus 8, remainder %s)', part, part);
    -- Packed already: trying again would cost time and win nothing.
    execute format('alter table page_links_%s alter column adjacency set storage external', part);
    execute format('create table url_rank_%s partition of url_rank for values with (modulus 8, remainder %s)', part, part);
  end loop;
end $$;

-- Degrees and top lists of the whole graph (web-graph/summary), for pages that cannot wait for a count.
create table graph_summary (
  made_at timestamptz primary key,
  summary jsonb not null
);

-- Down Migration
