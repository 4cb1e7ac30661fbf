-- Pages that an opt-out of a URL or of a part of a site hides, so that they are shown again, as they were, when it ends before they are
-- deleted. A column without a value. Under older coordinators they stay hidden until they are fetched anew.
-- needs: nothing
-- tables: slice

-- Up Migration

alter table page add column hidden_by integer; -- the opt-out that made it noindex; null: none did

-- Down Migration

alter table page drop column hidden_by;
