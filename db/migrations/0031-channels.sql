-- Channels (SARSS section 2.1): a host, a directory of a host, or a set of directories of a host, with what is crawled
-- of it. A host without a channel is crawled as before, as the scope says.
-- Old coordinators: run on, and admit what channels leave out; the next turn of a new one takes it out again.
-- Up Migration

create table channel (
  channel_id integer primary key generated always as identity,
  host_hash bigint not null,
  host text collate "C" not null,
  directories text[] not null,               -- '/': the whole host
  seeds text[] not null default '{}',
  include text[] not null default '{}',      -- patterns of path and query: * anything, $ the end
  exclude text[] not null default '{}',
  max_depth smallint,                        -- links from a seed; null: the scope's
  created_at timestamptz not null,
  -- Pages that the index has of it: what its next crawl will bring, as the paper has it "according to historical record".
  expected_pages integer not null default 0,
  counted_at timestamptz,
  -- Whether every URL that the frontier had before it is in line with it.
  settled boolean not null default false
);
create index channel_host on channel (host_hash);
create index channel_unsettled on channel (channel_id) where not settled;

-- Down Migration
