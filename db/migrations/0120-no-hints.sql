-- Hints of sites and hubs are gone (IndexNow, WebSub), and so is what was learnt of their worth, with the recrawl strategy ncis, which
-- went by it. Nothing that people entered is lost: policies keep their history, and a crawl under ncis goes on under optimal, which
-- plans as ncis did where no host had proven its signals.
-- needs: all coordinators stopped

-- Up Migration

do $$
begin
  raise notice 'tables hint, hint_key, hint_host, websub_subscription and host_signals, and the columns signals and signalled_at of frontier_url, are dropped';
end
$$;

drop table hint, hint_key, hint_host, websub_subscription, host_signals;
alter table frontier_url drop column signals, drop column signalled_at;

insert into policy_version (version, changed_at, changed_by, words, changes)
select coalesce((select max(version) from policy_version), 0) + 1, now(), 'migration 0120',
  'the recrawl strategy ncis is gone, and hints with it',
  jsonb_agg(jsonb_build_object('name', s.name, 'before', s.value, 'after',
    case when s.name = 'recrawl.strategy' then '"optimal"'::jsonb end) order by s.name)
from setting s
where s.name like 'hints.%' or (s.name = 'recrawl.strategy' and s.value = '"ncis"')
having count(*) > 0;
update setting set value = '"optimal"' where name = 'recrawl.strategy' and value = '"ncis"';
delete from setting where name like 'hints.%';

-- What the fleet was found to manage holds for optimal, too.
update recrawl_plan set strategy = 'optimal' where strategy = 'ncis';
