-- Work on the registry that was asked for on a page or over the API: what, by whom, how far it is, how it ended.
-- Old coordinators: run on; they start no jobs and show none.
-- Up Migration

-- While a job runs, its coordinator holds the advisory lock 'nearcrawl registry-job' of the schema: a job that says
-- that it runs while nobody holds the lock was broken off.
create table registry_job (
  job_id integer primary key generated always as identity,
  kind text not null check (kind in ('fetch', 'plan', 'apply', 'rollback')),
  -- Where the files are, the plan that is applied, the generation that is rolled back.
  asked jsonb not null,
  asked_by text not null,
  via text not null check (via in ('page', 'api')),
  state text not null check (state in ('running', 'done', 'failed', 'cancelled', 'broken-off')),
  started_at timestamptz not null,
  seen_at timestamptz not null,              -- its coordinator's last sign of it
  ended_at timestamptz,
  -- {text, share, lines}: where it is now, how much of that is done (0 to 1), and what lies behind it.
  progress jsonb not null,
  cancel_asked_by text,
  exit_code integer,
  words text,                                -- why it failed
  result jsonb                               -- what the command printed
);
create unique index registry_job_running on registry_job (state) where state = 'running';

-- Down Migration
