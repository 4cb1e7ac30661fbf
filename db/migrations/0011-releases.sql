-- Releases of the crawler: signed manifests with their bundles, whose signatures count, how far each release is
-- offered, and what became of it at each crawler.
-- Old coordinators: run on. They offer no releases, serve no bundles and know no release keys.
-- Up Migration

-- The keys that the fleet trusted first, raw Ed25519 in base64url; rotations carry on from there.
create table release_key (
  public_key text primary key,
  added_at timestamptz not null
);
create table release_key_rotation (
  sequence bigint primary key,
  signed text not null,                      -- the envelope, as it is served (protocol/release-envelope.ts)
  published_at timestamptz not null
);
-- Each is the whole list of its time; the one with the highest number is in force.
create table release_revocation (
  sequence bigint primary key,
  signed text not null,
  digests text[] not null,
  reason text not null,
  published_at timestamptz not null
);

create table release_bundle (
  digest text primary key,                   -- SHA-256, hex
  bundle bytea not null
);
create table release (
  version text collate "C" primary key,
  sequence bigint not null unique,
  digest text not null references release_bundle,
  signed text not null,                      -- the manifest's envelope
  expires_at timestamptz not null,
  published_at timestamptz not null,
  -- To whom it is offered: nobody, one crawler, a share of them, all.
  stage text not null default 'none' check (stage in ('none', 'one', 'percent', 'all')),
  percent real check (percent > 0 and percent <= 100),
  first_crawler_id integer references crawler on delete set null,   -- who got it first
  stage_since timestamptz,
  stage_words text not null default '',      -- why it stands where it does
  soak_minutes integer,                      -- moves on by itself after so long in good order; null: by hand
  check ((stage = 'percent') = (percent is not null))
);

create table release_offer (
  crawler_id integer not null references crawler on delete cascade,
  version text collate "C" not null references release on delete cascade,
  offered_at timestamptz not null,
  -- What the crawler's dock says became of it; null: nothing yet.
  state text check (state in ('refused', 'pinned', 'delayed', 'running', 'returned')),
  reason text not null default '',
  reported_at timestamptz,
  primary key (crawler_id, version)
);

-- What it said when it last came; null: no dock runs it.
alter table crawler
  add column release_version text,
  add column release_digest text,
  add column dock_version text,
  add column release_policy text;            -- its partner's: newest, pinned to … , delayed by …

-- Down Migration
