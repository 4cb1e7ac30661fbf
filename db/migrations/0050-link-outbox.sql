-- What results do to other hosts than their own (URLs named there, links that came or went) waits in an outbox, one packed
-- row a batch, and is summed and applied by one coordinator at a time (frontier/link-outbox-store.ts). No batch locks the
-- hosts that its pages link to.
-- Old coordinators: may go on; what they take, they apply at once, and what waits is applied by the new ones.
-- Up Migration

-- Appended to, read through from its start, emptied; without an index, since it is short.
create table link_outbox (
  outbox_number bigint not null generated always as identity,
  crawler_id integer not null,               -- whose results they were
  effects integer not null,                  -- URLs of other hosts
  packed bytea not null,                     -- frontier/link-outbox.ts
  written_at timestamptz not null default now()
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);

-- One row: what is being applied, and how far. Each step moves it on in its own transaction, so that whoever takes over
-- from one that was ended in the middle goes on where that one stopped.
create table link_outbox_bite (
  only_row boolean primary key default true check (only_row),
  bite_number bigint not null default 0,
  outbox_numbers bigint[] not null default '{}', -- empty: nothing is under way
  reached_host bigint,                       -- applied up to this URL, in the order of hosts and URLs; null: nothing is yet
  reached_url bigint,
  moved_at timestamptz not null default now()
);
insert into link_outbox_bite default values;

-- Down Migration

drop table link_outbox_bite;
drop table link_outbox;
