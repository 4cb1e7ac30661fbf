-- needs: nothing
-- tables: shared
-- What a crawler got while there was nobody to compare it with counts as unmeasured, and what was measured from a place that a
-- crawler has left is void. Old coordinators run on: they try again what is unmeasured, and believe old measurements.

-- Up Migration

-- Since when it is where it is; null: it has never moved. What it measured, and what others measured of it, before is void.
alter table crawler add column placed_at timestamptz;

update delegation d
set measured = false
from probe_round r
where r.round_id = d.round_id
  and d.cause = 'probe-round'
  and d.measured
  and d.rtt_ms is null
  and not d.anycast
  and r.reason ->> 'type' = 'only-candidate';

-- Down Migration

alter table crawler drop column placed_at;
