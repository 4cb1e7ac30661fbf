-- A lease has the list of its URLs that await a result; the URLs' own rows stay as they are until a result comes. To
-- lease a slice is to write its host and its lease, and none of its URLs. A host has one open lease at most
-- (lease_open_host), so that no URL is in two.
-- Old coordinators: stop them first. They look for what is leased in a column that is gone. Leases that are open stay
-- open. Leases and results wait meanwhile: ten seconds on two busy cores for a hundred thousand URLs under leases, of
-- five million that the frontier had.
-- Up Migration

lock table lease, frontier_url in access exclusive mode;

-- None for a comparison, whose URLs are rows of double_check, and none when the lease is closed.
alter table lease add column open_url_hashes bigint[] not null default '{}';

update lease l
set open_url_hashes = held.url_hashes
from (
  select lease_id, array_agg(url_hash order by next_fetch_at, depth, url_hash) as url_hashes
  from frontier_url
  where lease_id is not null and state = 'leased'
  group by lease_id
) held
where l.lease_id = held.lease_id and l.closed_at is null;

update frontier_url u
set state = case when h.state = 'refused' then 'refused' else 'due' end,
    last_outcome = case when h.state = 'refused' then 'refused-address' else u.last_outcome end,
    last_reason = case when h.state = 'refused' then h.state_reason else u.last_reason end
from frontier_host h
where u.lease_id is not null and u.state = 'leased' and h.host_hash = u.host_hash;

-- What is due of a host is so whether it is under a lease or not: a host without a lease is leased by this.
update frontier_host h
set due_at = least(h.due_at, (
  select min(u.next_fetch_at)
  from frontier_url u
  where u.host_hash = h.host_hash and u.state = 'due' and h.opt_out_id is null
))
where h.host_hash in (select host_hash from lease where closed_at is null);

drop index frontier_url_lease;
alter table frontier_url
  drop column lease_id,
  drop constraint frontier_url_state_check,
  -- Not looked for in the rows that are there, which would read them all.
  add constraint frontier_url_state_check check (state in ('due', 'refused', 'gone', 'held')) not valid;

-- Of the indexes of a host, each of which its lease and the end of it write, one that its hash makes needless.
drop index frontier_host_name;
-- Whether any channel knows texts, which is asked for each request.
create index channel_known on channel (host_hash) where duplicate_share > 0;

-- Down Migration
