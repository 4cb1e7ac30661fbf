/**
 * Verifies before every start that the files on disk are what was signed: the manifest, and the bundle by the manifest. The
 * state that names a release proves nothing.
 */

import { z } from "zod";
import {
  aheadOfClock,
  type FollowedRoles,
  followRoles,
  keysFile,
  maxRotations,
  numberOfLink,
  type ReleaseRevocations,
  type ReleaseTimestamp,
  type Roles,
  releaseManifest,
  verifyRevocations,
  verifyTimestamp,
} from "#protocol/release";
import {
  type Envelope,
  envelope,
  maxEnvelopeBytes,
  openEnvelope,
  type Refused,
  type Role,
  readEnvelope,
} from "#protocol/release-envelope";
import { jsonOf } from "../core/json.ts";
import type { KeptRelease } from "../core/release-state.ts";
import { type ReleaseSource, SourceFailure } from "./release-source.ts";
import type { ReleaseShelf } from "./release-store.ts";

/** Returns why the release must not start, or null. Expiry only concerns releases that are not running yet. */
export async function faultOfKept(
  release: KeptRelease,
  { shelf, trust }: { readonly shelf: ReleaseShelf; readonly trust: Trust },
): Promise<string | null> {
  const signed = shelf.readManifest(release.digest);
  if (signed === null) return "its signed manifest is gone";
  const opened = openedByAny(trust.before, ({ releases }) =>
    openEnvelope(signed, { kind: "release", role: releases, schema: releaseManifest }),
  );
  if ("refused" in opened) return `its manifest: ${opened.refused}`;
  const { digest, bytes } = opened.value;
  if (digest !== release.digest || bytes !== release.bytes) return "its manifest is another release's";
  if (trust.revocations?.digests.includes(digest)) return `it was revoked: ${trust.revocations.reason}`;
  return (await shelf.holds(release)) ? null : "its file is damaged or gone";
}

// Tracks whom the supervisor trusts, what is revoked, and how current this is: the pinned keys as continued by rotations and
// roots, the revocation list, and the statement of the newest release. All are signed, stored as served, and never replaced by
// older ones.

const rotationsFile = "rotations.json";
const revocationsFile = "revocations.json";
const timestampFile = "timestamp.json";

/** Limits keys.json. 100 rotations take about 80 KB. */
const maxServedRotationBytes = 1024 * 1024;

const keptRotations = z.array(envelope).max(2 * maxRotations);

/** If there is a root, the newest release must be stated. */
export interface Trust extends Omit<FollowedRoles, "followed"> {
  /** Null if no release was ever revoked. */
  readonly revocations: ReleaseRevocations | null;
  readonly newness: Newness;
}

/**
 * How current the coordinator's data are. `unstated`: no trusted key has ever stated it here, and no root requires it.
 * `stale`: nothing is installed until it is stated again, while the running release continues.
 */
type Newness =
  | { readonly type: "unstated" }
  | { readonly type: "stated"; readonly timestamp: ReleaseTimestamp }
  | { readonly type: "stale"; readonly reason: string };

export interface TrustSettings {
  readonly shelf: ReleaseShelf;
  readonly pinned: Role;
  readonly now: () => Date;
}

export function keptTrust(settings: TrustSettings): Trust {
  const { shelf, pinned } = settings;
  const { roles, before, hasRoot } = followRoles(pinned, shelf.read(rotationsFile, keptRotations) ?? []);
  const known = { roles, before, hasRoot, revocations: keptRevocations(shelf, before) };
  return { ...known, newness: newnessOf(known, settings, null) };
}

/**
 * Downloads the lists and keeps newer ones. Throws a SourceFailure if the coordinator is unreachable or its answer is not
 * genuine.
 */
export async function refreshTrust(
  settings: TrustSettings & { readonly source: ReleaseSource },
): Promise<Trust> {
  const { source } = settings;
  const served = await source.text("/releases/keys.json", maxServedRotationBytes);
  takeRotations(settings, served === null ? [] : rotationsIn(served));
  const stated = await source.text("/releases/timestamp.json", maxEnvelopeBytes);
  const signed = await source.text("/releases/revocations.json", maxEnvelopeBytes);
  const trust = keptTrust(settings);
  if (signed === null && trust.revocations !== null)
    throw new SourceFailure("the coordinator no longer serves the list of revoked releases");
  const revocations = signed === null ? null : takeRevocations(settings, { signed, trust });
  const refused = stated === null ? null : takeTimestamp(settings, stated, trust.roles.timestamp);
  return { ...trust, revocations, newness: newnessOf({ ...trust, revocations }, settings, refused) };
}

function takeRotations({ shelf, pinned, now }: TrustSettings, served: readonly Envelope[]): void {
  const kept = shelf.read(rotationsFile, keptRotations) ?? [];
  const possible = served.filter((link) => aheadOfClock("a rotation", numberOfLink(link), now()) === null);
  const { followed } = followRoles(pinned, [...kept, ...possible]);
  if (followed.length > kept.length) shelf.write(rotationsFile, followed);
}

function takeRevocations(
  { shelf, now }: TrustSettings,
  { signed, trust }: { readonly signed: string; readonly trust: Trust },
): ReleaseRevocations {
  const read = readEnvelope(signed);
  if ("refused" in read) throw new SourceFailure(`the list of revoked releases: ${read.refused}`);
  const role = trust.roles.revocations;
  // A list signed only by retired keys sets no minimum number, since a thief may have chosen it.
  const newestSequence = keptRevocations(shelf, [trust.roles])?.sequence ?? 0;
  const verified = verifyRevocations(read, { role, newestSequence, now: now() });
  if ("ok" in verified) {
    if (verified.revocations.sequence !== trust.revocations?.sequence) shelf.write(revocationsFile, read);
    return verified.revocations;
  }
  // The coordinator has nothing newer than the current list, which is signed by keys that have since been retired.
  const before = openedByAny(trust.before, ({ revocations }) =>
    verifyRevocations(read, { role: revocations, newestSequence: trust.revocations?.sequence ?? 0 }),
  );
  if (
    trust.revocations !== null &&
    "ok" in before &&
    before.revocations.sequence === trust.revocations.sequence
  )
    return trust.revocations;
  throw new SourceFailure(`the list of revoked releases: ${verified.refused}`);
}

/** Returns null if the statement is kept, or else why it is not trusted. */
function takeTimestamp({ shelf, now }: TrustSettings, stated: string, role: Role): string | null {
  const read = readEnvelope(stated);
  if ("refused" in read) return read.refused;
  const newestSequence = keptTimestamp(shelf, role)?.sequence ?? 0;
  const verified = verifyTimestamp(read, { role, newestSequence, now: now() });
  if ("refused" in verified) return verified.refused;
  if (verified.timestamp.sequence > newestSequence) shelf.write(timestampFile, read);
  return null;
}

/** `refused` is why the served statement is not trusted, or null. */
function newnessOf(
  trust: Omit<Trust, "newness">,
  { shelf, now }: TrustSettings,
  refused: string | null,
): Newness {
  const { roles, hasRoot } = trust;
  const timestamp = keptTimestamp(shelf, roles.timestamp);
  const why = refused === null ? "" : `; what the coordinator serves: ${refused}`;
  if (timestamp === null) {
    return hasRoot ? { type: "stale", reason: `nobody states what is newest${why}` } : { type: "unstated" };
  }
  const { expiresAt, revocations } = timestamp;
  if (Date.parse(expiresAt) <= now().getTime())
    return { type: "stale", reason: `what is newest was last stated until ${expiresAt}${why}` };
  const known = trust.revocations?.sequence ?? 0;
  if (known >= revocations) return { type: "stated", timestamp };
  const reason = `the list of revoked releases has number ${revocations} by now, and the coordinator serves ${known === 0 ? "none" : `number ${known}`}`;
  return { type: "stale", reason };
}

/** Returns null if no valid key has signed a statement. One signed by retired keys does not count, whatever its number. */
function keptTimestamp(shelf: ReleaseShelf, role: Role): ReleaseTimestamp | null {
  const kept = shelf.read(timestampFile, envelope);
  const verified = kept === null ? null : verifyTimestamp(kept, { role, newestSequence: 0 });
  return verified !== null && "ok" in verified ? verified.timestamp : null;
}

/** The list was verified when it was saved. Its key may have been retired since. */
function keptRevocations(shelf: ReleaseShelf, before: readonly Roles[]): ReleaseRevocations | null {
  const kept = shelf.read(revocationsFile, envelope);
  if (kept === null) return null;
  const verified = openedByAny(before, ({ revocations }) =>
    verifyRevocations(kept, { role: revocations, newestSequence: 0 }),
  );
  return "ok" in verified ? verified.revocations : null;
}

/** Opens the envelope with the newest roles that can. Otherwise, returns why the newest ones refuse it. */
function openedByAny<Opened extends object>(
  before: readonly Roles[],
  open: (roles: Roles) => Opened | Refused,
): Opened | Refused {
  const answers = before.map(open).reverse();
  return answers.find((answer) => !("refused" in answer)) ?? answers[0] ?? { refused: "no key counts" };
}

function rotationsIn(text: string): readonly Envelope[] {
  const { data } = keysFile.safeParse(jsonOf(text));
  if (data === undefined) throw new SourceFailure("keys.json is not a list of key rotations");
  return data.rotations;
}
