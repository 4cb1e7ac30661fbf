/**
 * Protocol versions that this build speaks, newest first. The crawler offers its list, the coordinator
 * picks the newest that both know. Two versions are served at once, so that a fleet can be upgraded
 * crawler by crawler.
 *
 *   1  every message is JSON in the deflate stream of its direction
 *   2  from the welcome on, what the crawler says is packed (packed/message-frames.ts); the rest as in 1
 */
export const protocolVersions = [2, 1] as const;

/** The newest version both sides know, or null. */
export function agreeOnVersion(offered: readonly number[]): number | null {
  return protocolVersions.find((version) => offered.includes(version)) ?? null;
}
