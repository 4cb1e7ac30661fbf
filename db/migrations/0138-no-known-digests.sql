-- Leases no longer carry the digests of texts that a channel has under other URLs: of channels with 500 pages and more the set cost more than it
-- saved, unless a quarter of the texts stood there twice (test/bench/results/digests.md). The columns were counted anew every hour.
-- needs: all coordinators stopped

-- Up Migration

alter table channel drop column known_digests, drop column known_turn, drop column duplicate_share;

-- Down Migration

alter table channel
  add column known_digests text[] not null default '{}',
  add column known_turn int not null default 0,
  add column duplicate_share real not null default 0;
create index channel_known on channel (host_hash) where duplicate_share > 0;
