/**
 * Names of the channels for Postgres' NOTIFY. Channels belong to a database, worlds to a schema: each name carries the
 * number of its schema, so that no world is woken by what happens in another one of the same database.
 */

/** Channels are named by us, never by what comes from outside. */
export type Channel =
  | "nearcrawl_registry"
  | "nearcrawl_fleet"
  | "nearcrawl_opt_outs"
  | "nearcrawl_releases"
  | "nearcrawl_policies"
  | "nearcrawl_coordinators"
  | "nearcrawl_journal";

/** SQL that tells all who listen to the channel in the connection's schema. `payload`: SQL of a text, such as "$1". */
export function notify(channel: Channel, payload: string): string {
  return `pg_notify(${channelName(channel)}, ${payload})`;
}

/** SQL of the name. A schema's own name may be 63 bytes long, which is all that a channel's has room for. */
export function channelName(channel: Channel): string {
  return `'${channel}_' || current_schema()::regnamespace::oid`;
}
