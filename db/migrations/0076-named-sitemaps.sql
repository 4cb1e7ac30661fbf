-- needs: nothing
-- Sitemaps on other hosts that a host's robots.txt names: their entries of that host count (sitemaps.org, "Sitemaps & Cross
-- Submits"). Old coordinators neither write nor read it; what they let through meanwhile is what they always did.

-- Up Migration

create table named_sitemap (
  host_hash bigint not null,                 -- whose robots.txt names it
  sitemap_host_hash bigint not null,
  sitemap_url_hash bigint not null,
  primary key (sitemap_url_hash, sitemap_host_hash, host_hash)
);
create index named_sitemap_host on named_sitemap (host_hash);

-- Down Migration

drop table named_sitemap;
