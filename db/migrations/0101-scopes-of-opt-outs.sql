-- Opt-outs of less than a whole site: one URL, all below a URL, or one host without those below it. Coordinators of before would take
-- each for a whole site and delete its pages.
-- needs: all coordinators stopped
-- tables: shared

-- Up Migration

alter table opt_out
  -- Null: the site with everything below it, or the network.
  add column scope text check (scope in ('url', 'prefix', 'host')),
  -- Of a URL or prefix: canonical, without its scheme, since it covers http and https. A prefix has no slash at its end.
  add column url text collate "C",
  -- A page whose data were erased with the opt-out; crawlers are told for a month.
  add column erased_at timestamptz,
  add column erased_rows jsonb not null default '{}',        -- table → rows that went or were cleared
  add check (scope is null or site is not null),
  add check ((url is not null) = (scope is not null and scope <> 'host'));

drop index opt_out_site;
create unique index opt_out_site on opt_out (site, coalesce(scope, ''), coalesce(url, ''))
  where ended_at is null and site is not null;

drop trigger if exists note_in_journal on opt_out;
create trigger note_in_journal after insert or update on opt_out
  for each row execute function note_in_journal('{site,first_address,last_address,scope,url}', '{opt_out_id,looked_at,applied}');

-- Down Migration

drop trigger note_in_journal on opt_out;
create trigger note_in_journal after insert or update on opt_out
  for each row execute function note_in_journal('{site,first_address,last_address}', '{opt_out_id,looked_at,applied}');

delete from opt_out where scope is not null;
drop index opt_out_site;
alter table opt_out drop column scope, drop column url, drop column erased_at, drop column erased_rows;
create unique index opt_out_site on opt_out (site) where ended_at is null and site is not null;
