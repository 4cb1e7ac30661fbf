-- Keys that crawlers sign their requests to sites with, apart from their identities.
-- Old coordinators publish identities alone, and crawlers that they welcome sign with these.
-- needs: nothing
-- Up Migration

-- Since when it makes signing keys of its own, and its identity signs no requests; null: it does not.
alter table crawler add column signing_keys_since timestamptz;
-- An operator asked for another signing key; done once one was announced later.
alter table crawler add column signing_key_asked_at timestamptz;

-- Not in the journal: after a restore each crawler announces its keys again at its next hello.
create table crawler_signing_key (
  public_key text primary key,
  crawler_id integer not null references crawler on delete cascade,
  identity_key text not null,                -- under which it was announced: with another identity it is published no more
  announced_at timestamptz not null,         -- published from then on (nbf)
  expires_at timestamptz not null            -- published until then, and no signature is good for longer (exp)
);
create index crawler_signing_key_crawler on crawler_signing_key (crawler_id, announced_at);
create index crawler_signing_key_expires on crawler_signing_key (expires_at);

-- Down Migration

drop table crawler_signing_key;
alter table crawler drop column signing_key_asked_at;
alter table crawler drop column signing_keys_since;
