/**
 * Names of the channels for Postgres' NOTIFY. Channels belong to a database, worlds to a schema: each name carries the
 * number of its schema, so that no world is woken by what happens in another one of the same database.
 */

import type { PoolClient } from "pg";

/** Channels are named by us, never by what comes from outside. */
export type Channel =
  | "nearcrawl_registry"
  | "nearcrawl_fleet"
  | "nearcrawl_opt_outs"
  | "nearcrawl_releases"
  | "nearcrawl_policies"
  | "nearcrawl_coordinators"
  | "nearcrawl_journal";

/**
 * Tells all who listen to the channel in the connection's schema, of each payload; within a transaction they hear of it when
 * that commits. A statement of its own, that reads no table: an engine of several servers runs statements where the tables
 * are, and there nobody listens.
 */
export async function tell(
  client: Pick<PoolClient, "query">,
  channel: Channel,
  payloads: readonly string[],
): Promise<void> {
  if (payloads.length === 0) return;
  await client.query(`select pg_notify(${channelName(channel)}, unnest($1::text[]))`, [payloads]);
}

/** SQL of the name. A schema's own name may be 63 bytes long, which is all that a channel's has room for. */
export function channelName(channel: Channel): string {
  return `'${channel}_' || current_schema()::regnamespace::oid`;
}
