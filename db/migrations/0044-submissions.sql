-- URLs that people hand in: a receipt with an answer for each, kept for 90 days, and a scope for those who may.
-- Old coordinators: may go on; they know neither receipts nor the scope.
-- Up Migration

create table submission (
  submission_id bigint primary key generated always as identity,
  deed text not null check (deed in ('add', 'recrawl')),
  submitted_by text not null,
  submitted_at timestamptz not null,
  new_urls integer not null default 0,
  known_urls integer not null default 0,
  elsewhere_urls integer not null default 0,
  refused_urls integer not null default 0
);
create index submission_at on submission (submitted_at);

create table submission_url (
  submission_id bigint not null references submission on delete cascade,
  place integer not null,                    -- line or position in what was handed in, from 1
  url text collate "C" not null,             -- canonical; where it has no key as it was given, cut at 500 characters
  host_hash bigint,                          -- null: it has no key
  url_hash bigint,
  answer text not null check (answer in ('new', 'known', 'elsewhere', 'refused')),
  reason text,                               -- of what is refused or of another coordinator
  primary key (submission_id, place)
);

alter table operator_token
  drop constraint operator_token_scopes_check,
  add constraint operator_token_scopes_check check (
    cardinality(scopes) > 0
    and scopes <@ '{read,url-write,metrics-read,fleet-read,fleet-write,registry-write,policy-write,audit-read,access-write}'
  );

-- Down Migration

delete from operator_token where 'url-write' = any (scopes);
alter table operator_token
  drop constraint operator_token_scopes_check,
  add constraint operator_token_scopes_check check (
    cardinality(scopes) > 0
    and scopes <@ '{read,metrics-read,fleet-read,fleet-write,registry-write,policy-write,audit-read,access-write}'
  );
drop table submission_url;
drop table submission;
