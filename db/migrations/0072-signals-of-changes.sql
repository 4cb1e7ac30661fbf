-- Signals that a page has changed (its sitemap's lastmod, today), counted since its last fetch, and how good each host's
-- signals have proven: what recrawl.strategy ncis goes by, and what is learnt under every strategy (coordinator/recrawl/signal-store).
-- Old coordinators count no signals, and leave what is counted as it is: it is of no account once the page was fetched.
-- needs: nothing
-- Up Migration

alter table frontier_url
  add column signals smallint not null default 0,   -- since its last fetch, where signalled_at is later than that
  add column signalled_at timestamptz;              -- the change that was signalled last; null: none ever was

create table host_signals (
  host_hash bigint primary key,
  -- Sums of what is likely of visits and their signals (recrawl/signal-quality).
  signals real not null,
  true_signals real not null,
  missed_changes real not null,
  evidence real not null
);

-- Down Migration

drop table host_signals;
alter table frontier_url
  drop column signals,
  drop column signalled_at;
