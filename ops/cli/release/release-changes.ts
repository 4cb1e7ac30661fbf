/** What the release commands change, as the audit log keeps it. */

import type { stageRelease } from "#coordinator/releases/stage";
import type { Change } from "#core/audit";
import type { ReleaseManifest } from "#protocol/release";

export function keyTrusted(publicKey: string): Change {
  const words = `${publicKey} is a release key of this fleet.`;
  return { action: "release-key-trusted", target: "release keys", words, after: { publicKey } };
}

export function releasePublished({
  version,
  sequence,
  digest,
  builtFrom,
  expiresAt,
}: ReleaseManifest): Change {
  const words = `Release ${version} is published, and offered to nobody yet.`;
  const after = { version, sequence, digest, builtFrom, expiresAt };
  return { action: "release-published", target: `release ${version}`, words, after };
}

export function releaseStaged(
  { entry, members }: Awaited<ReturnType<typeof stageRelease>>,
  { version, to, again = false, soakMinutes = null }: Parameters<typeof stageRelease>[0],
): Change {
  const byItself = soakMinutes === null ? "" : ", and moves on by itself";
  const words = `Release ${version} is offered to ${members.length} crawlers (${to})${byItself}.`;
  const after = { stage: entry.stage, percent: entry.percent, again, soakMinutes, crawlers: members.length };
  return { action: "release-staged", target: `release ${version}`, words, after };
}

export function releaseHeld(version: string, reason: string): Change {
  const words = `Release ${version} is offered to nobody any more: ${reason}.`;
  return { action: "release-held", target: `release ${version}`, words, after: { reason } };
}

export function releaseRevoked(digest: string, reason: string): Change {
  const words = `The bundle ${digest} never runs again: ${reason}.`;
  return { action: "release-revoked", target: `bundle ${digest}`, words, after: { digest, reason } };
}

/** What was signed elsewhere and is in force here now. */
export function signedAccepted(kind: "key" | "revocations"): Change {
  return kind === "key"
    ? {
        action: "release-key-rotated",
        target: "release keys",
        words: "A signed rotation of keys is in force.",
      }
    : {
        action: "release-revoked",
        target: "release revocations",
        words: "A signed list of revoked releases is in force.",
      };
}
