/**
 * Protocol versions that this build speaks, newest first. The crawler offers its list, the coordinator
 * picks the newest that both know. Versions before the newest are served beside it, so that a fleet can be
 * upgraded crawler by crawler.
 *
 *   1  every message is JSON in the deflate stream of its direction
 *   2  from the welcome on, what the crawler says is packed (packed/message-frames.ts); the rest as in 1
 *   3  identities, seals, keys, stopped hosts, releases and moves: messages that an older crawler does not know
 *   4  the pace of work: a message that an older crawler does not know
 */
export const protocolVersions = [4, 3, 2, 1] as const;

/** From this version on a crawler knows what version 3 adds. */
export const identityVersion = 3;

const sinceIdentities: ReadonlySet<string> = new Set([
  "coordinator:key",
  "coordinator:stop-hosts",
  "coordinator:release",
  "coordinator:move",
]);

const sinceWorkPace: ReadonlySet<string> = new Set(["coordinator:work-pace"]);
const workPaceVersion = 4;

/** Whether a crawler that speaks this version knows what to do with such a message. */
export function isKnownTo(version: number, message: { readonly type: string }): boolean {
  if (version < workPaceVersion && sinceWorkPace.has(message.type)) return false;
  return version >= identityVersion || !sinceIdentities.has(message.type);
}

/** The newest version both sides know, or null. */
export function agreeOnVersion(offered: readonly number[]): number | null {
  return protocolVersions.find((version) => offered.includes(version)) ?? null;
}
