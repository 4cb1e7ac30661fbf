-- Moves of crawlers to other hosts: where each stands, and to which identity a name was signed over. Who runs a
-- crawler is its row's public key, which the move changes in the same transaction as its own step to 'moved'.
-- Old coordinators: run on. They take up no move, and tell a crawler that has moved only that its key is wrong.
-- Up Migration

create table crawler_move (
  move_id integer primary key generated always as identity,
  crawler_id integer not null references crawler on delete cascade,
  other_crawler_id integer not null references crawler on delete cascade,   -- whose host it is to run on
  name text not null,
  other_name text not null,
  -- Ed25519, base64url: of the crawler as it was, and of the other host.
  from_public_key text not null,
  to_public_key text not null,
  step text not null default 'asked'
    check (step in ('asked', 'emptying', 'packing', 'sending', 'moved', 'running', 'failed')),
  words text not null default '',            -- why it failed
  asked_at timestamptz not null,
  changed_at timestamptz not null,
  bytes bigint not null default 0,           -- that are to be sent, and that were
  sent_bytes bigint not null default 0,
  -- What the crawler sends (SHA-256, hex), and its signature under that and both keys (protocol/move.ts).
  digest text,
  signature text
);
-- A host takes part in one move at a time; the statement that asks for one looks across the two columns.
create unique index crawler_move_open on crawler_move (crawler_id)
  where step in ('asked', 'emptying', 'packing', 'sending');
create unique index crawler_move_open_other on crawler_move (other_crawler_id)
  where step in ('asked', 'emptying', 'packing', 'sending');
create index crawler_move_from on crawler_move (from_public_key);
create index crawler_move_to on crawler_move (to_public_key);

-- Down Migration
