-- Whose word on a crawler's presence counts, where several coordinators share the database: each takes a number when it
-- starts, and holds an advisory lock of that number for as long as it runs (crawlers/coordinator-presence-store).
-- Old coordinators: stop them. At their start they set every crawler offline, whoever it is connected to.
-- Up Migration

create sequence coordinator_number as integer;

alter table crawler
  add column coordinator_number integer;     -- of the coordinator it is, or was last, connected to; null: of none that said so

-- Down Migration
