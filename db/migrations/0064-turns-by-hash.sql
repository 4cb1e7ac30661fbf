-- The functions that count leases at addresses are planned once by each connection, when it ends its first lease. With
-- many leases at a time each was compared with all others from then on.
-- Old coordinators: run on.
-- Up Migration

alter function address_turns_begin() set enable_nestloop = off;
alter function address_turns_begin() set enable_seqscan = off;
alter function address_turns_ended() set enable_nestloop = off;
alter function address_turns_ended() set enable_seqscan = off;

-- Down Migration

alter function address_turns_begin() reset all;
alter function address_turns_ended() reset all;
