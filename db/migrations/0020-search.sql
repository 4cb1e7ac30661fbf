-- Search that stays fast as the index grows: the words of titles, headings and addresses in a column and an index of
-- their own, the best pages in an index of their own, who links to a page, and the words that people write.
-- Old coordinators: run on. They search as before, by page_lexemes, which stays; what is added keeps itself, or is
-- kept by the upkeep of newer coordinators. The table page is written anew once, which takes minutes for a million pages.
-- Up Migration

alter table page
  -- Other hosts that link to it, as the upkeep last counted them; at most 1000 are counted.
  add column popularity smallint not null default 0,
  -- 0: among the best of the index by what others say of it, which are looked through first. 1: the rest.
  add column tier smallint not null default 1,
  -- Words of title (A), headings and description (B), and address (C): short, so that ranking by it reads no text.
  add column head tsvector generated always as (
    ts_filter(lexemes, '{a,b}')
    || setweight(to_tsvector('simple', left(regexp_replace(url, '[^[:alnum:]]+', ' ', 'g'), 300)), 'C')
  ) stored;

-- No list of pending entries: every search would read it through.
create index page_head on page using gin (head) with (fastupdate = off);
create index page_first_head on page using gin (head) with (fastupdate = off) where tier = 0;
create index page_first_text on page using gin (lexemes) with (fastupdate = off) where tier = 0;
-- Which languages' rules the index has: a look-up for each.
create index page_text_search_config on page (text_search_config);

-- Ranking unpacks the lexemes of the best candidates: lz4 takes a third of the time. A server that was built without
-- it keeps its own way.
do $$
begin
  alter table page alter column lexemes set compression lz4;
  for part in 0..7 loop
    execute format('alter table page_%s alter column lexemes set compression lz4', part);
  end loop;
exception when feature_not_supported then
  null;
end $$;

create index link_to on link (to_host_hash, to_url_hash);

-- Words as people write them, for "did you mean": from titles, headings and first words of the pages.
create table search_word (
  word text collate "C" not null,
  language text not null default '',         -- of the pages; '': not known
  -- Pages that had it in the upkeep's latest round, and half of what it was before: what is gone fades.
  pages real not null,
  round integer not null,
  -- The word with none and with one of its letters left out: words one slip apart share one of these.
  deletes text[] not null,
  primary key (word, language)
) with (fillfactor = 80);
create index search_word_deletes on search_word using gin (deletes) with (fastupdate = off);

-- How far the upkeep has come on its way through the pages, by key. One row.
create table search_upkeep (
  only_row boolean primary key default true check (only_row),
  host_hash bigint,                          -- the last page looked at; null: a round begins
  url_hash bigint,
  round integer not null default 1,
  round_finished_at timestamptz,             -- the one before
  standings jsonb not null default '{}',     -- of this round: standing → pages
  least_standing smallint not null default 0, -- from which a page belongs to the first tier
  words integer not null default 0
);
insert into search_upkeep default values;

-- Down Migration
