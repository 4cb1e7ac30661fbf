-- Pages that two crawlers fetch and that are compared, what that says of each crawler, and of each host.
-- Old coordinators: run on. They take the results of comparisons for results without a lease and drop them, and give
-- work to a crawler that is not trusted unless it is drained, which is the default.
-- Up Migration

-- A page that others fetch again. Nothing of it goes into the index: it is compared and forgotten.
create table double_check (
  check_id bigint primary key generated always as identity,
  host_hash bigint not null,
  url_hash bigint not null,
  host text collate "C" not null,
  url text collate "C" not null,
  crawler_id integer not null references crawler on delete cascade,   -- who fetched it first
  cause text not null check (cause in ('sample', 'follow-up')),
  -- [{crawlerId, at, version, sketch}], the first one first; a sketch goes when all agreed.
  opinions jsonb not null,
  -- Who may give the next opinion, in no order, and until when; then it is dropped as stale.
  wanted integer[] not null,
  next_by timestamptz not null,
  lease_id bigint,                           -- under which the next one is being fetched
  verdict text check (verdict in ('agree', 'alone', 'once', 'by-place', 'by-visit', 'cannot-tell', 'stale')),
  suspect_id integer references crawler on delete cascade,
  words text not null default '',
  decided_at timestamptz
);
create unique index double_check_open on double_check (host_hash, url_hash) where verdict is null;
create index double_check_late on double_check (next_by) where verdict is null;
create index double_check_lease on double_check (lease_id) where lease_id is not null and verdict is null;
create index double_check_decided on double_check (decided_at) where verdict is not null;
create index double_check_suspect on double_check (suspect_id, decided_at) where suspect_id is not null;

-- What a comparison came to for one crawler, in the order of the comparisons: what the evidence is made of.
create table check_outcome (
  crawler_id integer not null references crawler on delete cascade,
  check_id bigint not null references double_check on delete cascade,
  host_hash bigint not null,
  outcome text not null check (outcome in ('agree', 'alone', 'once')),
  decided_at timestamptz not null,
  primary key (crawler_id, check_id)
);
create index check_outcome_host on check_outcome (host_hash, crawler_id);
create index check_outcome_check on check_outcome (check_id);

-- How a host's pages differ by themselves, and who stood alone on them.
create table host_disagreement (
  host_hash bigint primary key,
  agreed integer not null default 0,
  by_visit integer not null default 0,
  by_place integer not null default 0,
  suspects integer[] not null default '{}',
  bits real not null default 0,              -- of 64 bits of the simhash, at most
  links real not null default 0,             -- that only one of two fetches had, at most
  title boolean not null default false,
  silent boolean not null default false,     -- nothing can be concluded from a difference on it
  changed_at timestamptz not null
);
create index host_disagreement_silent on host_disagreement (host_hash) where silent;

create table crawler_trust (
  crawler_id integer primary key references crawler on delete cascade,
  pages bigint not null default 0,           -- fetched under leases, since the comparisons began
  watched_until_page bigint not null default 0,
  score real not null default 0,             -- of the evidence against its results, when it was last weighed
  -- Nothing before this counts: an operator has restored it.
  restored_at timestamptz,
  distrusted_at timestamptz,
  distrust_words text,
  -- Its probe reports are not believed.
  probes_doubted_at timestamptz,
  probes_words text
);

-- It is of a comparison: its URLs stay as they are in the frontier, and its results go into no index.
alter table lease add column is_check boolean not null default false;

-- 'trust': its results are not trusted; its subnets are handed over.
alter table crawler
  drop constraint crawler_drain_asked_by_check,
  add constraint crawler_drain_asked_by_check check (drain_asked_by in ('operator', 'crawler', 'trust'));

-- Down Migration
