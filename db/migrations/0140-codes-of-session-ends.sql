-- Why a crawler is away is kept as a code beside the words, so that advice goes by the code. Crawlers that are away now keep null, and get the
-- general advice until they have connected once more.
-- Old coordinators: they run on beside new ones, and leave the code as it is, so that it may be of an earlier end than the words until they are gone.
-- needs: nothing

-- Up Migration

alter table crawler add column offline_code text check (length(offline_code) <= 40);

-- Down Migration

alter table crawler drop column offline_code;
