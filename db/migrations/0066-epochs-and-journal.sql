-- What lets a restore or a failover be lived through: epochs of the database, and the journal's rows, which are copied into
-- files outside the database before whoever asked gets an answer (coordinator/journal).
-- Changes of old coordinators are journaled by the triggers.
-- needs: nothing
-- Up Migration

-- The database went back, or may have, at the beginning of each epoch but the first.
create table database_epoch (
  epoch integer primary key,
  database_id uuid not null,                 -- the same in all epochs; names the journal's folder
  began_at timestamptz not null,
  cause text not null check (cause in ('created', 'server', 'timeline', 'position', 'journal', 'operator')),
  words text not null,
  -- Of the server, as it was then or has been seen since; null: not looked at yet, or not told.
  system_identifier text,
  timeline bigint,
  -- The change feed goes from one number to the other: those between were given before, to changes that are lost.
  feed_last_before bigint not null default 0,
  feed_begins bigint not null default 0,
  -- What the journal gave back: {replayed: {kind: count}, failed: [{kind, key, words}]}; null: not held against it yet.
  replay jsonb
);
insert into database_epoch (epoch, database_id, began_at, cause, words)
values (1, gen_random_uuid(), now(), 'created', 'the database was set up');

-- Changes that must outlive the database, in the order in which they were made. Written by triggers, whoever makes them.
create table journal_entry (
  entry_number bigint primary key generated always as identity,
  entry_id uuid not null default gen_random_uuid(),   -- numbers are given again after a restore, this is not
  epoch integer not null,
  at timestamptz not null default clock_timestamp(),
  kind text not null,                        -- the table
  key text not null,                         -- of the row: names and hashes, no numbers that the database gave
  value jsonb not null                       -- the row as it is from then on
);
create index journal_entry_id on journal_entry (entry_id);
create index journal_entry_at on journal_entry (at);
create index journal_entry_key on journal_entry (kind, key, entry_number);

-- Arguments: the columns that make the key, and those that say nothing of what has to last.
create function note_in_journal() returns trigger language plpgsql as $$
declare
  left_out text[] := tg_argv[1]::text[] || 'crawler_id'::text;
  whole jsonb := to_jsonb(new);
  value jsonb := whole - left_out;
  key text;
begin
  if tg_op = 'UPDATE' and value = to_jsonb(old) - left_out then
    return null;
  end if;
  -- Numbers are given again after a restore, names are not.
  if whole ? 'crawler_id' then
    value := value || jsonb_build_object(
      'crawler', (select c.name from crawler c where c.crawler_id = (whole ->> 'crawler_id')::integer));
  end if;
  select string_agg(coalesce(value ->> part, ''), ' ' order by place) into key
  from unnest(tg_argv[0]::text[]) with ordinality as parts (part, place);
  insert into journal_entry (epoch, kind, key, value)
  select max(epoch), tg_table_name, key, value from database_epoch;
  perform pg_notify('nearcrawl_journal_' || current_schema()::regnamespace::oid, '');
  return null;
end $$;

create trigger note_in_journal after insert or update on opt_out
  for each row execute function note_in_journal('{site,first_address,last_address}', '{opt_out_id,looked_at,applied}');
-- What a crawler says of itself, and where it is, comes again with the crawler.
create function note_crawler_in_journal() returns trigger language plpgsql as $$
begin
  insert into journal_entry (epoch, kind, key, value)
  select max(epoch), 'crawler', new.name, jsonb_build_object(
    'name', new.name, 'public_key', new.public_key, 'created_at', new.created_at, 'revoked_at', new.revoked_at,
    'granted_pages_per_day', new.granted_pages_per_day, 'granted_bytes_per_day', new.granted_bytes_per_day)
  from database_epoch;
  perform pg_notify('nearcrawl_journal_' || current_schema()::regnamespace::oid, '');
  return null;
end $$;
create trigger note_new_in_journal after insert on crawler
  for each row execute function note_crawler_in_journal();
create trigger note_in_journal after update of name, public_key, revoked_at, granted_pages_per_day, granted_bytes_per_day on crawler
  for each row when (
    (old.name, old.public_key, old.revoked_at, old.granted_pages_per_day, old.granted_bytes_per_day)
      is distinct from (new.name, new.public_key, new.revoked_at, new.granted_pages_per_day, new.granted_bytes_per_day))
  execute function note_crawler_in_journal();
create trigger note_in_journal after insert or update of kept_at, expires_at, revoked_at on crawler_key
  for each row execute function note_in_journal('{crawler,key_hash}', '{key_id,last_used_at,replaced_by}');
create trigger note_in_journal after insert or update of distrusted_at, probes_doubted_at, restored_at on crawler_trust
  for each row when (num_nonnulls(new.distrusted_at, new.probes_doubted_at, new.restored_at) > 0)
  execute function note_in_journal('{crawler}', '{pages,watched_until_page,score}');
create trigger note_in_journal after insert or update of redeemed_at, kept_at, revoked_at, crawler_id on invitation
  for each row execute function note_in_journal('{secret_hash}', '{invitation_id,downloaded_at}');
create trigger note_in_journal after insert or update of revoked_at, expires_at on operator_token
  for each row execute function note_in_journal('{name}', '{token_id,last_used_at}');
create trigger note_in_journal after insert or update of used_at, revoked_at on sign_in_link
  for each row execute function note_in_journal('{link_hash}', '{link_id}');
create trigger note_in_journal after insert or update on release_revocation
  for each row execute function note_in_journal('{sequence}', '{}');
create trigger note_in_journal after insert or update on release_key
  for each row execute function note_in_journal('{public_key}', '{}');
create trigger note_in_journal after insert or update on release_key_rotation
  for each row execute function note_in_journal('{sequence}', '{}');
create trigger note_in_journal after insert on audit_entry
  for each row execute function note_in_journal('{at,actor,action,target}', '{entry_id}');

-- The database went back since its last ticket: its signature is enough, once.
alter table crawler add column readmit boolean not null default false;

-- Down Migration

alter table crawler drop column readmit;
drop trigger note_in_journal on audit_entry;
drop trigger note_in_journal on release_key_rotation;
drop trigger note_in_journal on release_key;
drop trigger note_in_journal on release_revocation;
drop trigger note_in_journal on sign_in_link;
drop trigger note_in_journal on operator_token;
drop trigger note_in_journal on invitation;
drop trigger note_in_journal on crawler_trust;
drop trigger note_in_journal on crawler_key;
drop trigger note_in_journal on crawler;
drop trigger note_new_in_journal on crawler;
drop trigger note_in_journal on opt_out;
drop function note_crawler_in_journal;
drop function note_in_journal;
drop table journal_entry;
drop table database_epoch;
