/**
 * A coordinator that was given no release key makes one itself. With it, the coordinator signs and offers the crawler's bundle
 * that it ships with, so that an invitation leads to a crawler that runs. It signs only while its own key is in its home and
 * authorised. Where operators sign (release trust, a rotation away from this key) it publishes nothing.
 *
 *   no key is authorised         → the coordinator makes one, which is authorised from then on
 *   a bundle never published     → is signed and published: to all if nothing else is offered to all, else in stages
 *   the newest release ends soon → the same bundle is signed again, under the same version
 *
 * While an authorised key is there, it also states each day which release and which list of revoked ones are the newest.
 */
import type { KeyObject } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import type { Pool } from "pg";
import { createReleaseFleetStore, type ReleaseFleetStore } from "#coordinator/run/releases/fleet-store";
import { stageRelease } from "#coordinator/run/releases/move-stage";
import {
  createReleaseKeyStore,
  createReleaseStore,
  type ReleaseEntry,
  type ReleaseKeyStore,
  type ReleaseStore,
} from "#coordinator/run/releases/release-store";
import { defaultSoakMinutes, mayRun } from "#coordinator/run/releases/staging";
import type { Change } from "#core/audit";
import { UsageError } from "#core/errors";
import type { Log } from "#core/log";
import { migrate } from "#db/migrate";
import type { Database } from "#db/server-database";
import {
  type ReleaseManifest,
  type ReleaseTimestamp,
  releaseRevocations,
  verifyManifest,
  verifyRevocations,
  verifyTimestamp,
} from "#protocol/release";
import { type Envelope, rawPublicKey, unverifiedBody } from "#protocol/release-envelope";
import { recordCommand } from "../audit-command-change.ts";
import { commandContext, withDatabase } from "../command-context.ts";
import { type DatabaseOptions, readDatabase } from "../read-database.ts";
import { notedCommit, projectFolder } from "./build-bundle.ts";
import { type BundleFile, readBundle } from "./offline-commands.ts";
import { readSigningKey, writeNewKey } from "./release-key-file.ts";
import { defaultExpiresDays, firstSupervisor, signManifest, signTimestamp } from "./sign-release.ts";

interface AutomaticReleases {
  readonly stores: ReleaseStores;
  /** The folder that contains the key. */
  readonly home: string;
  readonly version: string;
  readonly log: Log;
  /** Default: the bundle of this installation. */
  readonly bundleFile?: string;
}

export const automaticKeyFile = (home: string) => join(home, "automatic-release-key.pem");

/** The build puts the bundle beside the compiled program. */
const builtBundle = () => join(projectFolder(), "dist/crawler-bundle.mjs");

/** Early enough that a coordinator which is off for a month still renews in time. */
const renewMs = 30 * 86_400_000;

/** Runs at the start and periodically. Never rejects, because without a release the coordinator still does everything else. */
export async function keepReleases(given: AutomaticReleases, now: Date): Promise<void> {
  const { log, bundleFile = builtBundle() } = given;
  try {
    if (existsSync(bundleFile)) {
      const key = await automaticKey(given, now);
      if (key !== null)
        await offerBundle({ ...given, bundleFile }, { key, bundle: readBundle(bundleFile), now });
    } else await missBundle(given, bundleFile);
    await stateNewest(given, now);
  } catch (error) {
    log.error({ error }, "the crawler's release could not be signed or published by itself");
  }
}

async function missBundle({ stores, log }: AutomaticReleases, bundleFile: string): Promise<void> {
  if ((await stores.keys.trusted()).length > 0) return;
  log.warn(
    { bundleFile },
    "no crawler can be invited: there is no release key, and no bundle to sign as the first release (npm run build)",
  );
}

/** Returns null when operators or another coordinator of this database sign. */
async function automaticKey(given: AutomaticReleases, now: Date): Promise<KeyObject | null> {
  const { stores, home, log } = given;
  const file = automaticKeyFile(home);
  const trusted = await stores.keys.trusted();
  if (trusted.length > 0) return await keptKey(file, trusted);
  const isNew = !existsSync(file);
  if (isNew) {
    mkdirSync(home, { recursive: true });
    writeNewKey(file, null);
  }
  const key = await unlockedKey(file);
  if (key === null) return null;
  const publicKey = rawPublicKey(key);
  if (!(await stores.keys.trustIfNone(publicKey, now))) {
    // Another coordinator made its key first.
    if (isNew) rmSync(file);
    return null;
  }
  await stores.record(keyTrusted(publicKey));
  log.info(
    { keyFile: file, publicKey },
    "a release key was made: whoever has this file can put code on every partner's machine (runbook: releasing the crawler)",
  );
  return key;
}

async function keptKey(file: string, trusted: readonly string[]): Promise<KeyObject | null> {
  const key = existsSync(file) ? await unlockedKey(file) : null;
  return key !== null && trusted.includes(rawPublicKey(key)) ? key : null;
}

/** Returns null for a key with a passphrase, which is only used by hand. */
async function unlockedKey(file: string): Promise<KeyObject | null> {
  if (readFileSync(file, "utf8").includes("ENCRYPTED")) return null;
  return await readSigningKey(file, null);
}

/** A separate key that a root authorises for timestamps only. */
export const timestampKeyFile = (home: string) => join(home, "release-timestamp-key.pem");

/** Renewed daily or on a change, and valid for a week, during which the coordinator may be off. */
const timestampMs = 86_400_000;
const timestampDays = 7;

/** Does nothing unless an authorised key without a passphrase is in the home. */
async function stateNewest({ stores, home, log }: AutomaticReleases, now: Date): Promise<void> {
  const { releases, keys } = stores;
  const role = (await keys.roles()).timestamp;
  const key =
    (await keptKey(timestampKeyFile(home), role.keys)) ?? (await keptKey(automaticKeyFile(home), role.keys));
  if (key === null || role.threshold > 1) return;
  const newest = await newestIn(releases, now);
  const stated = await releases.timestamp();
  const before = stated === null ? null : verifyTimestamp(stated, { role, newestSequence: 0, now });
  if (before !== null && "ok" in before) {
    const { createdAt, release, revocations } = before.timestamp;
    const isRecent = now.getTime() - Date.parse(createdAt) < timestampMs;
    if (isRecent && isDeepStrictEqual({ release, revocations }, newest)) return;
  }
  const { timestamp, signed } = signTimestamp({ ...newest, days: timestampDays }, [key], now);
  const refused = await releases.stateNewest(signed, now);
  if (refused !== null) log.warn({ refused }, "what is the newest release could not be stated");
  else
    log.info(
      { ...newest, expiresAt: timestamp.expiresAt },
      "the statement of the newest release was renewed",
    );
}

/** Returns what a timestamp must state. */
export async function newestIn(
  releases: Pick<ReleaseStores["releases"], "list" | "revocations">,
  now: Date,
): Promise<Pick<ReleaseTimestamp, "release" | "revocations">> {
  const newest = (await releases.list()).find((release) => release.stage === "all" && mayRun(release, now));
  const list = await releases.revocations();
  return {
    release: newest === undefined ? null : { version: newest.version, sequence: newest.sequence },
    revocations: list === null ? 0 : releaseRevocations.parse(unverifiedBody(list)).sequence,
  };
}

interface Signing {
  readonly key: KeyObject;
  readonly bundle: BundleFile;
  readonly now: Date;
}

async function offerBundle(
  given: AutomaticReleases & { bundleFile: string },
  signing: Signing,
): Promise<void> {
  const { stores } = given;
  const { bundle, now } = signing;
  const releases = await stores.releases.list();
  const known = releases.find(({ digest }) => digest === bundle.digest);
  if (known === undefined) {
    const version = freeVersion(given.version, bundle.digest, releases);
    await publish(version, given, signing);
    await stage(version, releases, given, now);
  } else if (known === releases[0] && !known.revoked && known.trusted) {
    // A release that an operator held remains held, and a replaced one remains replaced.
    if (known.stageSince === null) await stage(known.version, releases.slice(1), given, now);
    else if (known.stage !== "none" && known.expiresAt.getTime() - now.getTime() < renewMs)
      await publish(known.version, given, signing);
  }
}

/** Returns the software's version. If another bundle has that version, adds the first digits of the bundle's digest. */
function freeVersion(software: string, digest: string, releases: readonly ReleaseEntry[]): string {
  const plain = /^\d{1,6}(?:\.\d{1,6}){1,3}/.exec(software)?.[0] ?? "0.0";
  return releases.some(({ version }) => version === plain) ? `${plain}-${digest.slice(0, 8)}` : plain;
}

async function publish(
  version: string,
  { stores, log, bundleFile }: AutomaticReleases & { bundleFile: string },
  { key, bundle, now }: Signing,
): Promise<void> {
  const wishes = {
    ...{
      version,
      notes: "signed by its coordinator",
      expiresDays: defaultExpiresDays,
      oldestDock: firstSupervisor,
    },
    ...{ builtFrom: notedCommit(bundleFile, bundle.digest), sequence: null },
  };
  const { manifest, signed } = signManifest(bundle.bytes, wishes, { keys: [key], now });
  await publishRelease({ signed, bundle: bundle.bytes }, stores, now);
  await stores.record(releasePublished(manifest));
  const { digest, expiresAt } = manifest;
  log.info({ version, digest, expiresAt }, "the crawler's bundle was signed and published by itself");
}

async function stage(
  version: string,
  others: readonly ReleaseEntry[],
  { stores, log }: AutomaticReleases,
  now: Date,
): Promise<void> {
  const isReplacing = others.some((release) => release.stage === "all" && mayRun(release, now));
  const hasSupervisors = (await stores.releaseFleet.crawlers()).length > 0;
  const wished =
    isReplacing && hasSupervisors
      ? { version, to: "one", soakMinutes: defaultSoakMinutes, words: "by the coordinator" }
      : { version, to: "all", words: "by the coordinator" };
  await stores.record(releaseStaged(await stageRelease(wished, stores, now), wished));
  log.info({ version, to: wished.to }, "the release is offered by itself");
}

// The audit log's entries for release commands.

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

function releaseStaged(
  { entry, members }: Awaited<ReturnType<typeof stageRelease>>,
  { version, to, again = false, soakMinutes = null }: Parameters<typeof stageRelease>[0],
): Change {
  const byItself = soakMinutes === null ? "" : ", and moves on by itself";
  const words = `Release ${version} is offered to ${members.length} crawlers (${to})${byItself}.`;
  const after = { stage: entry.stage, percent: entry.percent, again, soakMinutes, crawlers: members.length };
  return { action: "release-staged", target: `release ${version}`, words, after };
}

export function releaseRevoked(digest: string, reason: string): Change {
  const words = `The bundle ${digest} never runs again: ${reason}.`;
  return { action: "release-revoked", target: `bundle ${digest}`, words, after: { digest, reason } };
}

/** Records that a text signed elsewhere is now in force. */
export function signedAccepted(kind: "key" | "root" | "revocations" | "timestamp"): Change | null {
  switch (kind) {
    case "key":
    case "root": {
      const words = kind === "key" ? "A signed rotation of keys is in force." : "A signed root is in force.";
      return { action: "release-key-rotated", target: "release keys", words };
    }
    case "revocations": {
      const words = "A signed list of revoked releases is in force.";
      return { action: "release-revoked", target: "release revocations", words };
    }
    case "timestamp":
      // A timestamp is renewed regularly and changes nothing else.
      return null;
  }
}

export const releaseStores = (pool: Pool): Omit<ReleaseStores, "record"> => ({
  releases: createReleaseStore(pool),
  releaseFleet: createReleaseFleetStore(pool),
  keys: createReleaseKeyStore(pool),
});

/** With `setUp`, migrates the database first, so it may be empty. */
export async function withReleases<Value>(
  options: DatabaseOptions,
  { setUp = false }: { readonly setUp?: boolean },
  work: (stores: ReleaseStores) => Promise<Value>,
): Promise<Value> {
  const context = commandContext(options);
  const run = async ({ pool }: Database) =>
    await work({ ...releaseStores(pool), record: async (change) => await recordCommand(pool, change) });
  if (!setUp) return await readDatabase(context, run);
  return await withDatabase(context, async (database) => {
    await migrate(database);
    return await run(database);
  });
}

// Verifies a release and publishes it for supervisors.

/** Throws a UsageError with the reason when the release is refused. */
export async function publishRelease(
  { signed, bundle }: { readonly signed: Envelope; readonly bundle: Uint8Array },
  { releases, keys }: Pick<ReleaseStores, "releases" | "keys">,
  now: Date,
): Promise<ReleaseManifest> {
  const roles = await keys.roles();
  if (roles.releases.keys.length === 0) {
    throw new UsageError(
      "this fleet has no release key yet: nearcrawl release trust KEY, with the public key",
    );
  }
  const list = await releases.revocations();
  const read = list === null ? null : verifyRevocations(list, { role: roles.revocations, newestSequence: 0 });
  const verified = verifyManifest(signed, {
    role: roles.releases,
    now,
    newestSequence: 0,
    revocations: read !== null && "ok" in read ? read.revocations : null,
    dockVersion: null,
    bundle,
  });
  if ("refused" in verified) throw new UsageError(`the release is refused: ${verified.refused}`);
  const refused = await releases.publish({ manifest: verified.manifest, signed, bundle, now });
  if (refused !== null) throw new UsageError(`the release is refused: ${refused}`);
  return verified.manifest;
}

// The stores of releases, for commands that work on the coordinator's database.

export interface ReleaseStores {
  readonly releases: ReleaseStore;
  readonly releaseFleet: ReleaseFleetStore;
  readonly keys: ReleaseKeyStore;
  /** Records a change in the audit log. */
  record(change: Change): Promise<void>;
}
