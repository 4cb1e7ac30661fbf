-- Opt-outs that nobody has proven hide their pages for a week before they are deleted. Those that are open already keep the rule they were
-- made under: theirs are hidden until they lapse. Older coordinators do without it, and delete nothing by it.
-- needs: nothing
-- tables: shared

-- Up Migration

alter table opt_out add column deletes_at timestamptz; -- an unproven one deletes its pages from then on; null: never

-- Down Migration

alter table opt_out drop column deletes_at;
