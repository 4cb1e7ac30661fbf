-- Slices of the web are gone: one database has all hosts. A database of one slice loses nothing: what the slice had counted goes
-- into the daily figures. One of several slices is refused, since hosts of the others would be lost.
-- needs: all coordinators stopped

-- Up Migration

do $$
declare
  others integer;
begin
  select count(*) into others from web_slice where slice_number <> 0 and state <> 'removed';
  if others > 0 then
    raise exception 'the web of this database lies in % slices, and this version reads one: bring all hosts back into slice 0 with the last version that has slices (nearcrawl slices remove, commit c5f0cfce), then start this one',
      others + 1;
  end if;
  raise notice 'tables web_slice, slice_range, slice_move, slice_lead, slice_self, slice_shipment, slice_arrival, exchange_arrival, closed_lease_day, closed_lease_report and closed_lease_receipt are dropped';
end
$$;

insert into day_figures as d (day, leases_done, leases_expired, leases_returned, leased_urls)
select day, sum(leases_done), sum(leases_expired), sum(leases_returned), sum(leased_urls)
from (
  select day, leases_done, leases_expired, leases_returned, leased_urls from closed_lease_day
  union all
  select of.day, of.leases_done, of.leases_expired, of.leases_returned, of.leased_urls
  from closed_lease_report r
  cross join jsonb_to_recordset(r.days) as of
    (day date, leases_done bigint, leases_expired bigint, leases_returned bigint, leased_urls bigint)
  -- One that was received is counted there already.
  where not exists (select from closed_lease_receipt t where t.report_number >= r.report_number)
) left_over
group by day
on conflict (day) do update
set leases_done = d.leases_done + excluded.leases_done,
    leases_expired = d.leases_expired + excluded.leases_expired,
    leases_returned = d.leases_returned + excluded.leases_returned,
    leased_urls = d.leased_urls + excluded.leased_urls;

drop table closed_lease_day, closed_lease_report, closed_lease_receipt, exchange_arrival;
drop table slice_arrival, slice_shipment, slice_self, slice_lead, slice_move, slice_range, web_slice;
alter table link_outbox drop column to_slice;
