-- After how many hours without a backup people are told so (backup.warnAfterHours of the coordinator's file), as the
-- coordinator stated it when it last started; null: nobody is. Old coordinators may still run.

-- Up Migration

alter table coordinator_place add column backup_warn_hours double precision default 48;

-- Down Migration

alter table coordinator_place drop column backup_warn_hours;
