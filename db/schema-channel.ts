/**
 * Names the channels for Postgres' NOTIFY. Channels belong to a database but worlds to a schema, so each name contains
 * its schema's number. A world therefore never wakes another one in the same database.
 */

import type { PoolClient } from "pg";

/** Channel names are constants and never come from input. */
export type Channel =
  | "nearcrawl_registry"
  | "nearcrawl_fleet"
  | "nearcrawl_opt_outs"
  | "nearcrawl_releases"
  | "nearcrawl_policies"
  | "nearcrawl_coordinators"
  | "nearcrawl_journal";

/**
 * Notifies all listeners in the connection's schema of each payload when the transaction commits. The statement reads
 * no table, because an engine with several servers runs statements where the tables are, and no listener is connected
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

/** SQL of the name. Uses the schema's number, because its name alone may fill the 63 bytes of a channel's name. */
export function channelName(channel: Channel): string {
  return `'${channel}_' || current_schema()::regnamespace::oid`;
}
