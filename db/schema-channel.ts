/**
 * Names the channels for Postgres' NOTIFY. Channels belong to a database but worlds to a schema, so each name contains
 * its schema's number and no world wakes another in the same database.
 */

import type { PoolClient } from "pg";

/** Channel names are constants, never external input. */
export type Channel =
  | "nearcrawl_registry"
  | "nearcrawl_fleet"
  | "nearcrawl_opt_outs"
  | "nearcrawl_releases"
  | "nearcrawl_policies"
  | "nearcrawl_coordinators"
  | "nearcrawl_journal";

/**
 * Notifies all listeners in the connection's schema of each payload, at the commit of a transaction. The statement
 * reads no table, because an engine with several servers runs statements where the tables are, and nobody listens
 * there.
 */
export async function tell(
  client: Pick<PoolClient, "query">,
  channel: Channel,
  payloads: readonly string[],
): Promise<void> {
  if (payloads.length === 0) return;
  await client.query(`select pg_notify(${channelName(channel)}, unnest($1::text[]))`, [payloads]);
}

/** SQL of the name. A schema's name may take all 63 bytes of a channel's name, so its number is used. */
export function channelName(channel: Channel): string {
  return `'${channel}_' || current_schema()::regnamespace::oid`;
}
