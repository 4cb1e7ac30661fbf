-- An incident may be about a document: a robots.txt or a page that another parser reads otherwise than the crawler's own. Nothing goes.
-- Old coordinators: they run on beside new ones, and leave it out.
-- needs: nothing

-- Up Migration

alter table incident add column file text check (length(file) <= 16384);

-- Down Migration

alter table incident drop column file;
