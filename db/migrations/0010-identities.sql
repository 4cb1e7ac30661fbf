-- Who a crawler is: its public key, its keys (hashed, scoped, with an end), the tickets by which a copied folder is
-- noticed; invitations, operators' tokens, and why a crawler was away.
-- Old coordinators: stop them first. They look for keys in a column that is gone, so nobody could connect to them.
-- Up Migration

create table crawler_key (
  key_id integer primary key generated always as identity,
  crawler_id integer not null references crawler on delete cascade,
  key_hash text not null,                    -- SHA-256 of the key, hex; the key itself is never stored
  scopes text[] not null default '{probe,crawl}' check (scopes <@ '{probe,crawl}' and cardinality(scopes) > 0),
  created_at timestamptz not null default now(),
  kept_at timestamptz,                       -- null: it was sent, and nobody has said or shown that it arrived
  expires_at timestamptz,                    -- null: when it is replaced or revoked
  last_used_at timestamptz,
  revoked_at timestamptz,
  replaced_by integer references crawler_key on delete set null,
  unique (crawler_id, key_hash)
);

insert into crawler_key (crawler_id, key_hash, created_at, kept_at, revoked_at)
select crawler_id, key_hash, created_at, created_at, revoked_at from crawler;

alter table crawler
  drop column key_hash,
  add column public_key text unique,         -- Ed25519, 32 bytes in base64url; null: it has no identity of its own
  -- SHA-256 (hex) of the ticket of the last welcome, and of the one that was shown for that welcome.
  add column ticket_hash text,
  add column previous_ticket_hash text,
  -- The last arrivals of this identity, the latest first: [{at, address, instanceId}].
  add column arrivals jsonb not null default '[]',
  add column seen_address inet,              -- where its last connection came from
  add column expected_address inet,          -- and the one that it came from before, when that was another
  add column address_changed_at timestamptz,
  -- What its operator gives it at most; null: what its partner allows.
  add column granted_pages_per_day integer,
  add column granted_bytes_per_day bigint,
  -- An operator asked for a new key, and how long the one before stays good; null: nobody has asked.
  add column rotation_asked_at timestamptz,
  add column rotation_grace_hours real,
  -- How the process before ended, in its own words (hello.lastEnd), and why it was away the last time, in ours.
  add column last_end_at timestamptz,
  add column last_words text,
  add column was_offline_since timestamptz,
  add column was_offline_reason text;

create table invitation (
  invitation_id integer primary key generated always as identity,
  secret_hash text not null unique,          -- SHA-256, hex
  name text not null,
  renews boolean not null default false,     -- for a crawler that is there and gets a new identity
  scopes text[] not null default '{probe,crawl}' check (scopes <@ '{probe,crawl}' and cardinality(scopes) > 0),
  pages_per_day integer,                     -- null: what the partner allows
  bytes_per_day bigint,
  created_by text not null,
  created_at timestamptz not null,
  expires_at timestamptz not null,
  revoked_at timestamptz,
  redeemed_at timestamptz,
  public_key text,                           -- who redeemed it
  crawler_id integer references crawler on delete set null,
  kept_at timestamptz                        -- the crawler has its own key: the secret opens nothing any more
);
create index invitation_name on invitation (name);

create table operator_token (
  token_id integer primary key generated always as identity,
  name text not null unique,
  token_hash text not null unique,           -- SHA-256, hex
  scopes text[] not null check (scopes <@ '{fleet-read,fleet-write}' and cardinality(scopes) > 0),
  created_at timestamptz not null,
  expires_at timestamptz,
  last_used_at timestamptz,
  revoked_at timestamptz
);

-- Where partners reach the coordinator and what its certificate's key hashes to, as it said when it last started.
create table coordinator_place (
  only_one boolean primary key default true check (only_one),
  web_url text not null,
  certificate_pin text,                      -- SHA-256 of the SubjectPublicKeyInfo, base64url; null: no TLS of its own
  has_public_url boolean not null default false,   -- web_url is where others say it is reached, maybe by a proxy
  stated_at timestamptz not null
);

-- Down Migration
