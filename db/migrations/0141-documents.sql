-- The texts of pages lie in a table of their own, as written: a page's row is read for its facts, and few reads want its text.
-- The search's engines make their terms of the texts, so that Postgres has no index of words any more, and what its own
-- search needed goes. An old page has the beginning of its text and, searched but not shown, its words as they were indexed; its
-- next visit brings all of its text. Every page is read and written once, which takes half an hour for a million.
-- needs: all coordinators stopped

-- Up Migration

create table document (
  host_hash bigint not null,
  url_hash bigint not null,
  description text not null,
  headings jsonb not null,                   -- [{level, text}]
  structured jsonb,                          -- {type, name, description}
  text text not null,                        -- main text that may be quoted; empty: none, or not to be indexed
  unquoted text,                             -- main text that is searched and never shown
  snippet_characters integer,                -- how much of the text may be shown in one piece; null: no limit
  primary key (host_hash, url_hash)
) partition by hash (host_hash);

-- Compressed beside the other columns as long as a row fits into a block, which spares a look-up for each text. A server that
-- was built without lz4 keeps its own way, which takes three times as long to unpack.
alter table document alter column text set storage main, alter column unquoted set storage main;
do $$
begin
  alter table document alter column text set compression lz4, alter column unquoted set compression lz4;
exception when feature_not_supported then
  null;
end $$;

do $$
begin
  for part in 0..7 loop
    execute format('create table document_%s partition of document for values with (modulus 8, remainder %s)', part, part);
  end loop;
end $$;

-- Words with a weight are those of title, headings and description.
insert into document (host_hash, url_hash, description, headings, structured, text, unquoted)
select host_hash, url_hash, description, headings, structured, excerpt, (
    select string_agg(word.lexeme, ' ' order by place.at)
    from unnest(ts_filter(p.lexemes, '{d}')) word
    cross join unnest(word.positions) place (at)
  )
from page p;

drop trigger page_touched_by_delete on page;
drop trigger page_touched_by_update on page;
drop trigger page_touched_by_insert on page;
drop function note_touched_pages;
drop table page_touch, search_word, search_upkeep;

-- Words of Greek have stems now.
update page set text_search_config = 'greek' where language = 'el';

-- The last change writes the rows anew, which frees the space of what is dropped.
alter table page
  drop column head,
  drop column lexemes,
  drop column tier,
  drop column popularity,
  drop column excerpt,
  drop column description,
  drop column headings,
  drop column structured;
drop index page_text_search_config, page_digest;
alter table page alter column words type integer using words + 0;

-- Which lists of preferences pages have: one that no page and no change has is removed.
create index page_preference_set on page (preference_set) where preference_set is not null;

-- No text outlives its page, whoever deletes it. A foreign key would look up and lock the page at each write of a text.
create function delete_documents() returns trigger language plpgsql as $$
begin
  delete from document d using gone where d.host_hash = gone.host_hash and d.url_hash = gone.url_hash;
  return null;
end
$$;
create trigger page_documents after delete on page
  referencing old table as gone for each statement execute function delete_documents();

-- Down Migration
-- None: the indexed words of pages are not kept.
