/**
 * Which keys a dock takes releases from: those that its invitation pinned, carried on by rotations. A rotation
 * names a new key, may retire an old one, and is signed by a key that is trusted at that moment. Rotations are
 * counted from 1 without a gap, and a dock keeps those that it has followed: whoever finds an old key later can
 * put nothing in the place of one.
 */
import { z } from "zod";
import { publicKey } from "./identity.ts";
import { type Envelope, envelope, openEnvelope, type Refused } from "./release-envelope.ts";

/** Rotations that are followed, at most: one a month for eight years. */
export const maxRotations = 100;

export const keyRotation = z.strictObject({
  product: z.literal("nearcrawl-crawler"),
  sequence: z.int().min(1).max(maxRotations),
  newKey: publicKey,
  /** Counts no more from now on; null: both keys count. */
  retires: publicKey.nullable(),
  createdAt: z.iso.datetime(),
});
export type KeyRotation = z.infer<typeof keyRotation>;

/** `/releases/keys.json`: all of them, in order. */
export const keysFile = z.object({ rotations: z.array(envelope).max(maxRotations) });
export type KeysFile = z.infer<typeof keysFile>;

export interface FollowedKeys {
  /** Trusted after the last rotation that could be followed. */
  readonly keys: readonly string[];
  /** How many of the rotations could be followed: these are worth keeping. */
  readonly followed: number;
  /** Why the next one could not be. */
  readonly refused: string | null;
}

/** `rotations`: in order, those that were kept first. */
export function trustedKeys(pinned: readonly string[], rotations: readonly Envelope[]): readonly string[] {
  return followRotations(pinned, rotations).keys;
}

/** Stops at the first rotation that is not signed by a key trusted by then, or is out of turn. */
export function followRotations(pinned: readonly string[], rotations: readonly Envelope[]): FollowedKeys {
  let keys = pinned;
  for (const [index, signed] of rotations.slice(0, maxRotations).entries()) {
    const next = rotate(keys, signed, index + 1);
    if ("refused" in next) return { keys, followed: index, refused: next.refused };
    keys = next.keys;
  }
  return { keys, followed: Math.min(rotations.length, maxRotations), refused: null };
}

function rotate(
  keys: readonly string[],
  signed: Envelope,
  sequence: number,
): { readonly keys: readonly string[] } | Refused {
  const opened = openEnvelope(signed, { kind: "key", keys, schema: keyRotation });
  if ("refused" in opened) return { refused: `key rotation ${sequence}: ${opened.refused}` };
  const { value } = opened;
  if (value.sequence !== sequence) {
    return { refused: `key rotation ${value.sequence} stands where ${sequence} should` };
  }
  if (value.retires === value.newKey) return { refused: `key rotation ${sequence} retires its own new key` };
  return { keys: [...new Set([...keys, value.newKey])].filter((key) => key !== value.retires) };
}
