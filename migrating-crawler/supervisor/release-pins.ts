/**
 * HOME/releases/pins.json: whose signatures the dock believes at first. The membership names these keys too, but the
 * crawler writes that file; this one it may only read, so that whoever got into a crawler adds no key of his own.
 */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { releaseKeys } from "#protocol/invitation";
import type { Membership } from "../membership/membership.ts";
import { readPrivateJson, writePrivateJson } from "../membership/private-file.ts";

const pins = z.object({ releaseKeys });

export const releasesFolder = (home: string) => join(home, "releases");
const pinsFile = (home: string) => join(releasesFolder(home), "pins.json");

/** At every join: a person vouches for the invitation. */
export function pinReleaseKeys(home: string, keys: readonly string[]): void {
  mkdirSync(releasesFolder(home), { recursive: true, mode: 0o700 });
  writePrivateJson(pinsFile(home), { releaseKeys: keys });
}

/**
 * Raw Ed25519 public keys, base64url. A folder that joined before there was such a file keeps those of its membership
 * from now on. Throws a ConfigError when the file is damaged: the membership's word would be no good replacement.
 */
export function pinnedReleaseKeys(
  home: string,
  membership: Pick<Membership, "releaseKeys">,
): readonly string[] {
  const ifDamaged = "Put it back from a backup, or ask the operator for an invitation and join --again.";
  const kept = readPrivateJson(pinsFile(home), pins, ifDamaged);
  if (kept !== null) return kept.releaseKeys;
  pinReleaseKeys(home, membership.releaseKeys);
  return membership.releaseKeys;
}
