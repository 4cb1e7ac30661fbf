/**
 * Stores the crawler's identity in `identity.json`: an Ed25519 key pair (RFC 8032) that is created on first use and never sent
 * anywhere. It survives upgrades and rebuilt machines for as long as the home does.
 */
import { createPrivateKey, generateKeyPairSync, sign } from "node:crypto";
import { join } from "node:path";
import { z } from "zod";
import { ConfigError } from "#core/errors";
import { publicKey } from "#protocol/identity";
import { createPrivateJson, readPrivateJson } from "../core/private-file.ts";

export interface Identity {
  /** 32 bytes in base64url. */
  readonly publicKey: string;
  sign(text: string | Uint8Array): string;
}

/** The fields of RFC 8037 section 2 with descriptive names. */
export const keyPairSchema = z.object({
  publicKey,
  /** 32 bytes (the seed) in base64url. */
  privateKey: z.string().regex(/^[A-Za-z0-9_-]{43}$/),
});

type KeyPair = z.infer<typeof keyPairSchema>;

export const identityFile = (home: string) => join(home, "identity.json");

const ifDamaged =
  "Put it back from a backup; without one, ask the operator for a new invitation, remove identity.json and membership.json, and join again.";

/** Creates the identity if it is missing. Two concurrent processes get the same one. */
export function openIdentity(home: string): Identity {
  const path = identityFile(home);
  const kept = readIdentity(path);
  if (kept !== null) return kept;
  createPrivateJson(path, newKeys());
  const made = readIdentity(path);
  if (made === null) throw new ConfigError([`${path}: vanished while it was made`]);
  return made;
}

function readIdentity(path: string): Identity | null {
  const keys = readPrivateJson(path, keyPairSchema, ifDamaged);
  if (keys === null) return null;
  const signer = signerOf(keys);
  if (signer !== null) return signer;
  throw new ConfigError([`${path}: the two keys do not belong together. It is left as it is. ${ifDamaged}`]);
}

export function newKeys(): KeyPair {
  const { x = "", d = "" } = generateKeyPairSync("ed25519").privateKey.export({ format: "jwk" });
  return { publicKey: x, privateKey: d };
}

export function signerOf(keys: KeyPair): Identity | null {
  const jwk = { kty: "OKP", crv: "Ed25519", x: keys.publicKey, d: keys.privateKey };
  const privateKey = createPrivateKey({ key: jwk, format: "jwk" });
  // The imported seed yields its own public key, whatever `x` says.
  if (privateKey.export({ format: "jwk" }).x !== keys.publicKey) return null;
  return {
    publicKey: keys.publicKey,
    sign: (text) => sign(null, Buffer.from(text as string), privateKey).toString("base64url"),
  };
}
