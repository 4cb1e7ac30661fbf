-- Opt-outs that nobody has proven hide their pages until they are proven or lapse, and delete nothing. The column went by a rule that is gone,
-- and nobody entered what is in it. Pages that were deleted by it come back as they are fetched again, once their opt-out ends.
-- needs: all coordinators stopped

-- Up Migration

alter table opt_out drop column deletes_at;

-- Down Migration

alter table opt_out add column deletes_at timestamptz;
