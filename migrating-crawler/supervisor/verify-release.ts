/**
 * What lies on the disk is what was signed: before every start the manifest beside the bundle is verified again, and
 * the bundle against it. The state that names a release is a memory, no proof.
 */

import { z } from "zod";
import {
  aheadOfClock,
  type ReleaseRevocations,
  type ReleaseTimestamp,
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
import { followRoles, keysFile, maxRotations, numberOfLink, type Roles } from "#protocol/release-roles";
import { jsonOf } from "../core/json.ts";
import type { KeptRelease } from "../core/release-state.ts";
import { type ReleaseSource, SourceFailure } from "./release-source.ts";
import type { ReleaseShelf } from "./release-store.ts";

/** Why it must not be started; null: it may. Expiry is for releases that do not run yet, and no matter here. */
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

// Whom the supervisor believes, what is never to run again, and how new what it knows is: the pinned keys carried on by
// rotations and roots, the list of revoked releases, and the statement of what is newest. All are signed, kept on the
// disk as they were served, and never go back to an older one.

const rotationsFile = "rotations.json";
const revocationsFile = "revocations.json";
const timestampFile = "timestamp.json";

/** Of keys.json: 100 rotations have some 80 KB. */
const maxServedRotationBytes = 1024 * 1024;

const keptRotations = z.array(envelope).max(2 * maxRotations);

export interface Trust {
  readonly roles: Roles;
  /** All roles that ever counted: what was signed then runs on until it is revoked. */
  readonly before: readonly Roles[];
  /** A root is followed: what is newest has to be stated. */
  readonly hasRoot: boolean;
  /** Null: no release was ever revoked. */
  readonly revocations: ReleaseRevocations | null;
  readonly newness: Newness;
}

/**
 * How new what the coordinator serves is. `unstated`: nobody whose word counts has ever stated it here, and no root asks
 * for it. `stale`: nothing is taken until it is stated anew; what runs goes on.
 */
type Newness =
  | { readonly type: "unstated" }
  | { readonly type: "stated"; readonly timestamp: ReleaseTimestamp }
  | { readonly type: "stale"; readonly reason: string };

interface TrustSettings {
  readonly shelf: ReleaseShelf;
  /** Of the invitation. */
  readonly pinned: Role;
  readonly now: () => Date;
}

/** What was believed last. */
export function keptTrust(settings: TrustSettings): Trust {
  const { shelf, pinned } = settings;
  const { roles, before, hasRoot } = followRoles(pinned, shelf.read(rotationsFile, keptRotations) ?? []);
  const known = { roles, before, hasRoot, revocations: keptRevocations(shelf, before) };
  return { ...known, newness: newnessOf(known, settings, null) };
}

/** Asks the coordinator for the lists and keeps what is newer. Throws a SourceFailure when it cannot be asked, or answers with what is not genuine. */
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
  // Of a list that retired keys alone have signed the number binds nobody: a thief may have chosen it.
  const newestSequence = keptRevocations(shelf, [trust.roles])?.sequence ?? 0;
  const verified = verifyRevocations(read, { role, newestSequence, now: now() });
  if ("ok" in verified) {
    if (verified.revocations.sequence !== trust.revocations?.sequence) shelf.write(revocationsFile, read);
    return verified.revocations;
  }
  // The coordinator has no newer list than the one that is in force here, signed by keys that were retired since.
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

/** Null: it is kept, or was before. Otherwise why it is not believed. */
function takeTimestamp({ shelf, now }: TrustSettings, stated: string, role: Role): string | null {
  const read = readEnvelope(stated);
  if ("refused" in read) return read.refused;
  const newestSequence = keptTimestamp(shelf, role)?.sequence ?? 0;
  const verified = verifyTimestamp(read, { role, newestSequence, now: now() });
  if ("refused" in verified) return verified.refused;
  if (verified.timestamp.sequence > newestSequence) shelf.write(timestampFile, read);
  return null;
}

/** `refused`: why what is served is not believed; null: it is, or nothing was. */
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

/** Null: there is none by keys that count. One that retired keys have signed binds nobody, whatever its number. */
function keptTimestamp(shelf: ReleaseShelf, role: Role): ReleaseTimestamp | null {
  const kept = shelf.read(timestampFile, envelope);
  const verified = kept === null ? null : verifyTimestamp(kept, { role, newestSequence: 0 });
  return verified !== null && "ok" in verified ? verified.timestamp : null;
}

/** It was verified when it was taken; its key may have been retired since. */
function keptRevocations(shelf: ReleaseShelf, before: readonly Roles[]): ReleaseRevocations | null {
  const kept = shelf.read(revocationsFile, envelope);
  if (kept === null) return null;
  const verified = openedByAny(before, ({ revocations }) =>
    verifyRevocations(kept, { role: revocations, newestSequence: 0 }),
  );
  return "ok" in verified ? verified.revocations : null;
}

/** By the newest roles that it can be opened by; otherwise why the newest refuse it. */
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
