/**
 * Which keys a dock takes releases from: those that its invitation pinned, carried on by rotations. A rotation
 * names a new key, may retire an old one, and is signed by a key that is trusted at that moment. Their numbers
 * grow, and a dock keeps those that it has followed: whoever finds a retired key later can put nothing in the
 * place of one. A dock that joined later has pinned a later key, and passes over what came before.
 */
import { z } from "zod";
import { publicKey } from "./identity.ts";
import { type Envelope, envelope, openEnvelope } from "./release-envelope.ts";

/** Rotations that are followed, at most: one a month for eight years. */
export const maxRotations = 100;

export const keyRotation = z.strictObject({
  product: z.literal("nearcrawl-crawler"),
  sequence: z.int().min(1),
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
  /** Trusted at some time, those that were retired since included. */
  readonly everTrusted: readonly string[];
  /** The rotations that could be followed, in order: these are worth keeping. */
  readonly followed: readonly Envelope[];
}

/** `rotations`: in order, those that were kept first; what was served may repeat them. */
export function trustedKeys(pinned: readonly string[], rotations: readonly Envelope[]): readonly string[] {
  return followRotations(pinned, rotations).keys;
}

/** Passes over what is not signed by a key trusted by then, and what is numbered no higher than the last followed. */
export function followRotations(pinned: readonly string[], rotations: readonly Envelope[]): FollowedKeys {
  const followed: Envelope[] = [];
  const everTrusted = new Set(pinned);
  let keys = pinned;
  let last = 0;
  // Twice: what was kept, and what was served.
  for (const signed of rotations.slice(0, 2 * maxRotations)) {
    const opened = openEnvelope(signed, { kind: "key", keys, schema: keyRotation });
    if ("refused" in opened || opened.value.sequence <= last) continue;
    const { sequence, newKey, retires } = opened.value;
    if (newKey === retires) continue;
    keys = [...new Set([...keys, newKey])].filter((key) => key !== retires);
    everTrusted.add(newKey);
    followed.push(signed);
    last = sequence;
  }
  return { keys, everTrusted: [...everTrusted], followed };
}
