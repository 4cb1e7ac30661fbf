-- Who has changed what, who is signed in, and what tokens are good for.
-- Old coordinators: run on. They write nothing down, let nobody sign in, and refuse tokens the new scopes' routes.
-- Up Migration

-- Append-only: nothing of ours updates or deletes a row.
create table audit_entry (
  entry_id bigint primary key generated always as identity,
  at timestamptz not null,
  actor text not null,                       -- 'anna', 'token dashboard', 'root on db1', 'coordinator'
  via text not null check (via in ('page', 'api', 'command', 'coordinator')),
  action text not null,
  target text,
  words text not null,
  -- Small JSON without secrets; null: nothing to tell.
  before jsonb,
  after jsonb,
  remote_address text
);
create index audit_entry_at on audit_entry (at);
create index audit_entry_actor on audit_entry (actor, entry_id);
create index audit_entry_action on audit_entry (action, entry_id);
create index audit_entry_target on audit_entry (target, entry_id);

-- Links that sign somebody in once. The secret is kept as its SHA-256 (hex).
create table sign_in_link (
  link_id integer primary key generated always as identity,
  link_hash text not null unique,
  name text not null,
  role text not null check (role in ('partner', 'staff', 'operator')),
  crawlers text[] not null default '{}',     -- those that a partner hosts, by name
  issued_by text not null,
  issued_at timestamptz not null,
  expires_at timestamptz not null,
  used_at timestamptz,
  revoked_at timestamptz
);
create index sign_in_link_expires on sign_in_link (expires_at);

-- A row is a session that has not been ended; it is good until ends_at, and while it is used.
create table web_session (
  session_id integer primary key generated always as identity,
  session_hash text not null unique,         -- SHA-256 (hex) of what the cookie holds
  name text not null,
  role text not null check (role in ('partner', 'staff', 'operator')),
  crawlers text[] not null default '{}',
  issued_by text not null,                   -- who had issued the link
  started_at timestamptz not null,
  last_used_at timestamptz not null,
  ends_at timestamptz not null,
  remote_address text,                       -- where it was used last, and with what
  user_agent text not null default '',
  said text                                  -- what the last action has to say, until a page has shown it
);
create index web_session_name on web_session (name);
create index web_session_ends on web_session (ends_at);

alter table operator_token
  drop constraint operator_token_scopes_check,
  add constraint operator_token_scopes_check check (
    cardinality(scopes) > 0
    and scopes <@ '{read,metrics-read,fleet-read,fleet-write,registry-write,policy-write,audit-read,access-write}'
  );

-- Down Migration
