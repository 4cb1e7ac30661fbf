-- What operators and partners see of the fleet: past absences, what each partner allows beside what it was granted,
-- who drained a crawler, and fetches that failed.
-- Old coordinators: run on. They keep no history of absences, and a budget that is raised counts from the crawler's
-- next arrival. Results wait while the index of page_fetch is made.
-- Up Migration

-- Written when a crawler comes back; the latest hundred of each.
create table crawler_absence (
  absence_id bigint primary key generated always as identity,
  crawler_id integer not null references crawler on delete cascade,
  away_since timestamptz not null,
  back_at timestamptz not null,
  reason text not null,                      -- the coordinator's own record
  last_words text                            -- how the process before ended, as it says; null: it did not end
);
create index crawler_absence_of on crawler_absence (crawler_id, absence_id);

insert into crawler_absence (crawler_id, away_since, back_at, reason)
select crawler_id, was_offline_since, connected_at, was_offline_reason
from crawler
where was_offline_since <= connected_at and was_offline_reason is not null;

alter table crawler
  -- Of its last hello; null: it has not come since this migration. What holds is the least of this and what is granted.
  add column partner_pages_per_day integer,
  add column partner_bytes_per_day bigint,
  -- 'partner': who hosts it, who may take it back as well.
  drop constraint crawler_drain_asked_by_check,
  add constraint crawler_drain_asked_by_check
    check (drain_asked_by in ('operator', 'crawler', 'trust', 'partner'));

create index page_fetch_failed on page_fetch (fetched_at) where blame is not null;

-- Down Migration
