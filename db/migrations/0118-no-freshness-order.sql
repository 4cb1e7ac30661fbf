-- The order freshness is gone (policy frontier.order): it put first what back-links puts first. Nothing that people entered is lost:
-- the policies keep their history, and a crawl under freshness goes on under back-links.
-- needs: all coordinators stopped

-- Up Migration

insert into policy_version (version, changed_at, changed_by, words, changes)
select coalesce((select max(version) from policy_version), 0) + 1, now(), 'migration 0118', 'the order freshness is gone',
  jsonb_build_array(jsonb_build_object('name', s.name, 'before', s.value, 'after', '"back-links"'::jsonb))
from setting s
where s.name = 'frontier.order' and s.value = '"freshness"';
update setting set value = '"back-links"' where name = 'frontier.order' and value = '"freshness"';

-- Down Migration
-- None: the history tells what the policy was.
