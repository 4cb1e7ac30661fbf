-- needs: nothing
-- What charts need and no table kept: how the queue, the fleet and its trust stood, and what each crawler did on each day.

-- Up Migration

-- How things stood, every five minutes; of what is older than two weeks one row an hour stays. A row is some 600 bytes.
create table gauge_sample (
  at timestamptz primary key,
  gauges jsonb not null                      -- {"queue.politeness": 3, …}: overview/gauges.ts names them
);

alter table crawler_figures
  add column pages bigint not null default 0,
  -- At the first of the quarters of an hour of each hour: the subnets that it had, and the mean RTT to them.
  add column subnets integer,
  add column rtt_ms real;

-- The sums of crawler_figures, since those are kept for a week: at most one row a day (UTC) and crawler.
create table crawler_day_figures (
  day date not null,
  crawler_id integer not null references crawler on delete cascade,
  fetches bigint not null,
  pages bigint not null,
  wire_bytes bigint not null,
  target_failures bigint not null,
  network_failures bigint not null,
  crawler_failures bigint not null,
  our_failures bigint not null,
  subnets integer,
  rtt_ms real,
  primary key (crawler_id, day)
);
create index crawler_day_figures_day on crawler_day_figures (day);

-- Down Migration

drop table crawler_day_figures;
alter table crawler_figures drop column pages, drop column subnets, drop column rtt_ms;
drop table gauge_sample;
