-- Several coordinators on one database: which run, where crawlers reach them, and which one leads. The one that leads does
-- what must be done once for the whole fleet (rounds, hand-overs, balance …); the others hand it what they hear.
-- Old coordinators: stop them. They would do the same beside the one that leads.
-- Up Migration

-- Those that run, and for half a minute those that were killed.
create table running_coordinator (
  coordinator_number integer primary key,
  beats bigint not null default 0            -- counts up while it runs; others watch it with clocks of their own
) with (fillfactor = 50);

create table fleet_lead (
  only_one boolean primary key default true check (only_one),
  coordinator_number integer,                -- null: nobody leads
  term bigint not null default 0,            -- counts those that led
  since timestamptz
);

-- Where crawlers reach a coordinator of this database; told to every crawler, so that it knows where to go from one that is gone.
create table coordinator_address (
  crawler_url text primary key,
  seen_at timestamptz not null               -- when one that is reached there last ran
);

-- What coordinators that do not lead want measured again.
create table round_request (
  subnet_id integer primary key,
  cause text not null,
  asked_at timestamptz not null default now()
);

-- What partners do not let their crawlers touch, as the latest hello says: the coordinator that leads asks nobody for it.
create table crawler_denies (
  crawler_id integer primary key references crawler on delete cascade,
  denies jsonb not null
);

-- Down Migration

drop table crawler_denies;
drop table round_request;
drop table coordinator_address;
drop table fleet_lead;
drop table running_coordinator;
