-- Sites and networks that are not to be crawled because somebody asked for it, and reports of trouble.
-- Old coordinators: run on, but know nothing of opt-outs: they go on leasing hosts that opted out. Upgrade all of
-- them before the form is made public.
-- Up Migration

-- Who opted out what. In force from `in_force_at` to `ended_at`; unconfirmed ones lapse.
create table opt_out (
  opt_out_id integer primary key generated always as identity,
  -- A domain with everything below it, or a network (operators only).
  site text collate "C",
  first_address inet,
  last_address inet,
  source text not null check (source in ('form', 'operator')),
  -- Published by the site in DNS to confirm; no secret.
  token text collate "C" not null,
  words text not null default '',            -- what the requester says
  reply_to text,                             -- where the requester can be reached, if told
  requester inet,                            -- where the form was sent from
  created_at timestamptz not null,
  in_force_at timestamptz,                   -- null: waits for a confirmation, since too many came at once
  lapses_at timestamptz,                     -- null: does not
  confirmed_at timestamptz,
  confirmed_by text check (confirmed_by in ('site', 'operator')),
  looked_at timestamptz,                     -- when DNS was last asked for the confirmation
  ended_at timestamptz,
  ending text check (ending in ('lifted', 'lapsed')),
  ending_words text not null default '',
  -- The frontier is in line with this row up to here: 0 not yet, 1 hosts marked, 2 their pages deleted, 3 marks gone.
  applied smallint not null default 0,
  check ((site is null) = (first_address is not null)),
  check ((first_address is null) = (last_address is null)),
  check (family(first_address) = family(last_address) and first_address <= last_address)
);
-- One open request a site or network, whatever collides.
create unique index opt_out_site on opt_out (site) where ended_at is null and site is not null;
create unique index opt_out_network on opt_out (first_address, last_address) where ended_at is null and site is null;
create index opt_out_created on opt_out (created_at);

-- Set while an opt-out in force covers the host: it gets no lease, nothing of it is admitted or found.
alter table frontier_host add column opt_out_id integer;
create index frontier_host_opted_out on frontier_host (host_hash) where opt_out_id is not null;

-- A site with everything below it is a range of names that are read backwards (frontier/opted-out-hosts.ts).
create index frontier_host_site on frontier_host (reverse(host) text_pattern_ops);

-- Reports of trouble, with what we did to the target when they came.
create table complaint (
  complaint_id integer primary key generated always as identity,
  target text collate "C" not null,          -- as it was given
  site text collate "C",                     -- the target as a domain with everything below it
  first_address inet,                        -- or as a network
  last_address inet,
  source text not null check (source in ('form', 'operator')),
  reporter text not null,                    -- who complains, as told
  words text not null,
  requester inet,
  created_at timestamptz not null,
  deeds jsonb not null,                      -- opt-outs/complaints.ts: what we did to the target then
  closed_at timestamptz,
  closing_words text,
  check ((site is null) <> (first_address is null))
);
create index complaint_created on complaint (created_at);
create index complaint_site on complaint (site) where site is not null;

alter table crawler
  -- The partner's wish: its address is not in the list that sites verify us by.
  add column unlisted boolean not null default false,
  add column partner_contact text;           -- whom to reach at the partner, as its crawler says; null: not told

-- Down Migration
