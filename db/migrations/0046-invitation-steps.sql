-- An invitation's page tells when the crawler's file was fetched by its line.
-- Old coordinators: may go on; they note no downloads.
-- Up Migration

alter table invitation add column downloaded_at timestamptz;   -- first; null: by nobody who used its line

-- Down Migration

alter table invitation drop column downloaded_at;
