-- Recrawl plans by channel (SARSS section 2.1): a host with configured channels has a row for each of them, and one for
-- its pages that lie in none.
-- Old coordinators: stop them before a plan is made (0033 wants them stopped anyway): theirs would find no key to write by.
-- Up Migration

alter table recrawl_host add column channel_id integer not null default 0;  -- 0: the host's pages in no channel
alter table recrawl_host
  drop constraint recrawl_host_pkey,
  add primary key (host_hash, channel_id);

update recrawl_plan
set plan = jsonb_set(plan, '{groups}', (
  select coalesce(jsonb_agg((part - 'hosts') || jsonb_build_object('channels', part -> 'hosts') order by place), '[]')
  from jsonb_array_elements(plan -> 'groups') with ordinality as groups (part, place)
))
where plan -> 'groups' is not null;

-- Down Migration
