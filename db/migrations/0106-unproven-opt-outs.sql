-- Opt-outs that nobody has proven hide their pages for a week before they are deleted. Those that are open already keep the rule they were
-- made under: theirs are hidden until they lapse. Older coordinators do without it, and delete nothing by it.
-- needs: nothing
-- tables: shared

-- Up Migration

alter table opt_out add column deletes_at timestamptz; -- an unproven one deletes its pages from then on; null: never

create index opt_out_believed on opt_out (in_force_at) where source = 'form';
create index opt_out_lifted on opt_out (site) where ending = 'lifted';

-- Down Migration

drop index opt_out_lifted;
drop index opt_out_believed;
alter table opt_out drop column deletes_at;
