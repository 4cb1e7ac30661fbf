-- Domain sets: which hosts a crawler may have, by name and language (domain-sets/domain-set.ts), as its operator gives
-- them and as its partner narrows them; the pace that it was told; and the language of a host's pages, by which sets of
-- languages are kept.
-- Old coordinators: run on, and lease whatever a crawler's subnets have, whoever's set it is in.
-- Up Migration

alter table crawler
  -- Each text is one set; a host must be in one of them. None: every host.
  add column domain_sets text[] not null default '{}',
  add column partner_domain_sets text[] not null default '{}',
  -- What it was told last (frontier/pace), by how much due work; null: nothing yet.
  add column pace text check (pace in ('slow-down', 'steady', 'hurry-up')),
  add column pace_due_slices integer,
  add column pace_since timestamptz;

-- Of most of its pages, as ISO 639 code; null: not known yet.
alter table frontier_host add column language text;

-- Down Migration
