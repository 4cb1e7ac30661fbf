-- User and password of URLs that sites redirected to or pages named as their own, as older crawlers sent them: out of
-- every row that kept them. What was refused with them when it was submitted is forgotten.
-- Old coordinators: run on, and keep such parts of new results as they did. Each table is read through once: page_change,
-- page and frontier_url take the time of a look at all their rows.
-- Up Migration

update page_change
set location = regexp_replace(location, '^(https?://)[^/?#]*@', '\1'),
  reason = regexp_replace(reason, '^(to https?://)[^/?#]*@', '\1')
where location ~ '^https?://[^/?#]*@';

update page_change_inbox
set location = regexp_replace(location, '^(https?://)[^/?#]*@', '\1'),
  reason = regexp_replace(reason, '^(to https?://)[^/?#]*@', '\1')
where location ~ '^https?://[^/?#]*@';

update frontier_url
set last_reason = regexp_replace(last_reason, '^(to https?://)[^/?#]*@', '\1')
where last_reason ~ '^to https?://[^/?#]*@';

update page
set canonical_url = regexp_replace(canonical_url, '^(https?://)[^/?#]*@', '\1')
where canonical_url ~ '^https?://[^/?#]*@';

delete from rejected_url
where url ~* '^\s*(https?:[/\\]*|([a-z][a-z0-9+.-]*:)?[/\\]{2,})[^/\\?#]*@';

-- Down Migration
