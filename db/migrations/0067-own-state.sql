-- What silence is told by: which coordinator it was that went silent, and how fast the disk fills.
-- Old coordinators: they run on beside new ones, and have no name for the others to tell.
-- Up Migration

alter table running_coordinator add column name text;   -- host and port, for people; null: one of an older version

-- What the database takes and what is free where it lies, a few times an hour: at what rate the disk fills.
create table disk_sample (
  sampled_at timestamptz primary key,
  database_bytes bigint not null,
  free_bytes bigint                        -- null: the disk is another machine's
);

-- Down Migration

drop table disk_sample;
alter table running_coordinator drop column name;
