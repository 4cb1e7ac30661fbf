/** A release key, and releases published in a database as the commands publish them. */
import { createHash, createPrivateKey, generateKeyPairSync, type KeyObject } from "node:crypto";
import type { Pool } from "pg";
import {
  createReleaseKeyStore,
  createReleaseStore,
  type StageChange,
} from "#coordinator/run/releases/release-store";
import { crawlerVersions } from "#protocol/coordinator-messages";
import type { ReleaseManifest } from "#protocol/release";
import { type Envelope, rawPublicKey, signBody } from "#protocol/release-envelope";

export const releaseNow = new Date("2030-01-01T12:00:00Z");

export interface ReleaseKey {
  readonly privateKey: KeyObject;
  readonly publicKey: string;
}

export function newReleaseKey(): ReleaseKey {
  const { privateKey } = generateKeyPairSync("ed25519");
  return { privateKey, publicKey: rawPublicKey(privateKey) };
}

export const testReleaseKey: ReleaseKey = fixedKey(7);

let lastSequence = 100;

/** Signed with `testReleaseKey`; each is newer than the one before. */
export async function publishedRelease(
  pool: Pool,
  wanted: {
    readonly version: string;
    readonly stage: StageChange["stage"];
    readonly bundle?: string;
    readonly manifest?: Partial<ReleaseManifest>;
    readonly key?: ReleaseKey;
  },
): Promise<ReleaseManifest> {
  const { version, stage, key = testReleaseKey } = wanted;
  const bundle = Buffer.from(wanted.bundle ?? `export const version = "${version}";\n`);
  const manifest = { ...manifestOf(version, bundle), ...wanted.manifest };
  const keys = createReleaseKeyStore(pool);
  if ((await keys.trusted()).length === 0) await keys.trustFirst(key.publicKey, releaseNow);
  const store = createReleaseStore(pool);
  const signed = signBody("release", manifest, key.privateKey);
  const refused = await store.publish({ manifest, signed, bundle, now: releaseNow });
  if (refused !== null) throw new Error(refused);
  const percent = stage === "percent" ? 5 : null;
  await store.setStage(version, { stage, percent, words: "", soakMinutes: null }, releaseNow);
  return manifest;
}

export function manifestOf(version: string, bundle: Uint8Array): ReleaseManifest {
  lastSequence += 1;
  return {
    product: "nearcrawl-crawler",
    version,
    sequence: lastSequence,
    digest: createHash("sha256").update(bundle).digest("hex"),
    bytes: bundle.byteLength,
    builtFrom: null,
    createdAt: "2029-12-31T00:00:00.000Z",
    expiresAt: "2030-03-31T00:00:00.000Z",
    oldestDock: "0.1.0",
    protocolVersions: [...crawlerVersions],
    notes: "",
  };
}

export function signedRevocations(
  sequence: number,
  digests: string[],
  key: ReleaseKey = testReleaseKey,
): Envelope {
  const createdAt = "2029-12-31T00:00:00.000Z";
  const list = { product: "nearcrawl-crawler", sequence, createdAt, digests, reason: "it loses results" };
  return signBody("revocations", list, key.privateKey);
}

function fixedKey(seed: number): ReleaseKey {
  // PKCS#8 of an Ed25519 key (RFC 8410 section 7) around 32 bytes.
  const der = Buffer.concat([Buffer.from("302e020100300506032b657004220420", "hex"), Buffer.alloc(32, seed)]);
  const privateKey = createPrivateKey({ key: der, format: "der", type: "pkcs8" });
  return { privateKey, publicKey: rawPublicKey(privateKey) };
}
