/**
 * Protocol versions that this build speaks, newest first. The crawler offers its list, the coordinator
 * picks the newest that both know. Two versions are served at once, so that a fleet can be upgraded
 * crawler by crawler.
 */
export const protocolVersions = [1] as const;

/** The newest version both sides know, or null. */
export function agreeOnVersion(offered: readonly number[]): number | null {
  return protocolVersions.find((version) => offered.includes(version)) ?? null;
}
