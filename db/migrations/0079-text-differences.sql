-- What changed in a page's text, kept with the change that tells of it (coordinator/changes/text-difference); and URLs that
-- were refused, by their beginning, for the page of their host. A column without a value: quick whatever the tables hold.
-- Old coordinators write changes without it, and show none.
-- needs: nothing
-- Up Migration

alter table page_change_inbox add column difference bytea;   -- deflated; null: none that may be kept
alter table page_change add column difference bytea;

create index rejected_url_beginning on rejected_url (url collate "C");

-- Down Migration

drop index rejected_url_beginning;
alter table page_change drop column difference;
alter table page_change_inbox drop column difference;
