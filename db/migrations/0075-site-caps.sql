-- Caps of operators on the pace at a site, and the cap that holds for each host. Old coordinators may still run; they keep
-- no cap.
-- needs: nothing

-- Up Migration

create table site_cap (
  site text collate "C" primary key,         -- a host name in ASCII: it and all names below it
  delay_ms integer not null check (delay_ms between 1 and 3600000),  -- least time between two requests to one host
  words text not null,                       -- why, as whoever set it says
  set_by text not null,
  set_at timestamptz not null
);

-- The longest delay of the caps whose sites the host belongs to; null: there is none.
alter table frontier_host add column cap_delay_ms integer;

-- Down Migration

alter table frontier_host drop column cap_delay_ms;
drop table site_cap;
