-- What sites state of the uses of their pages (Content-Signal, Content-Usage, TDMRep, RSL, words), kept with each page;
-- and hosts that answer 402. Columns without a value and checks that are not looked up: quick whatever the tables hold.
-- Old coordinators: they run on beside new ones, store pages without it, and show what sites do not want searched.
-- needs: nothing
-- Up Migration

-- Lists of statements, each once: sites of one provider state the same, and so do a site's pages.
create table preference_set (
  set_id integer primary key generated always as identity,
  digest bytea not null unique,              -- SHA-256 of `stated`, the first 16 bytes
  stated jsonb not null,                     -- [{standard, place, uses, answer, text}], at most 24, 2000 characters of text
  answers jsonb not null,                    -- what they come to: {"ai-train": "denied"}
  -- When a result, or the search's walk through the pages, met it; within a day. What nobody meets any more goes.
  used_at timestamptz not null
);

alter table page
  add column preference_set integer,         -- null: nothing is stated
  add column preferences_since timestamptz;  -- the fetch that found this list first

-- The round before the last one was over then: whatever a page has was met since.
alter table search_upkeep add column walked_since timestamptz;

-- Answers 402 in a row, the last one's time and price as the site named it; null: none.
alter table frontier_host
  add column payments_asked integer,
  add column payment_asked_at timestamptz,
  add column payment_price text;

alter table page_change_inbox
  add column preference_set integer,
  add column preference_set_before integer;
alter table page_change
  add column preference_set integer,
  add column preference_set_before integer,
  drop constraint page_change_kind_check,
  add constraint page_change_kind_check check (kind in ('first-seen', 'changed', 'links-changed', 'preferences-changed',
    'came-back', 'redirected', 'gone', 'given-up')) not valid;

-- Down Migration

delete from page_change_inbox where kind = 'preferences-changed';
delete from page_change where kind = 'preferences-changed';
alter table page_change
  drop constraint page_change_kind_check,
  add constraint page_change_kind_check check (kind in ('first-seen', 'changed', 'links-changed', 'came-back', 'redirected',
    'gone', 'given-up')) not valid,
  drop column preference_set_before,
  drop column preference_set;
alter table page_change_inbox
  drop column preference_set_before,
  drop column preference_set;
alter table frontier_host
  drop column payment_price,
  drop column payment_asked_at,
  drop column payments_asked;
alter table search_upkeep drop column walked_since;
alter table page
  drop column preferences_since,
  drop column preference_set;
drop table preference_set;
