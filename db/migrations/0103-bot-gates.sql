-- Hosts behind bot gates, which rest and are tried again one URL at a time; and pages that scripts draw. Columns without a
-- value, and an index that nothing is in yet: it is made by one pass over the hosts, for which writes to them wait.
-- Old coordinators may still run: to them a challenge is a failure, after which the page stays and the URL waits.
-- needs: nothing
-- tables: slice

-- Up Migration

alter table frontier_host
  add column challenges integer,             -- tries in a row that a bot gate answered; null: the last was the site's own answer
  add column challenge_provider text,        -- of the last of them, as protocol/bot-gate names it
  add column challenged_since timestamptz,   -- the first of them
  add column challenged_at timestamptz,      -- the last of them
  add column challenge_of text;              -- robots: of robots.txt, so that nothing else was asked; page
create index frontier_host_challenged on frontier_host (challenge_provider) where challenges is not null;

alter table page add column needs_scripts boolean; -- it has no text until scripts draw it; null: it has, or nobody looked

-- Down Migration

alter table page drop column needs_scripts;
drop index frontier_host_challenged;
alter table frontier_host
  drop column challenge_of,
  drop column challenged_at,
  drop column challenged_since,
  drop column challenge_provider,
  drop column challenges;
