/**
 * The key with which a crawler signs its requests to sites. It is not the identity's key, since a signing key should serve
 * one purpose (draft-ietf-webbotauth-httpsig-protocol-01, October 2026, "Key Reuse Considered Harmful"). The crawler makes
 * it, announces it here under its identity's signature, and uses it once the coordinator has published it and caches have had
 * time to fetch it:
 *
 *   welcome (signingKeys) → crawler:signing-key → coordinator:signing-key (published, or why not)
 *   by age, or when an operator asks: coordinator:renew-signing-key → crawler:signing-key with the next one → …
 *
 * No end is sent these messages unless it has stated that it knows them (`signingKeys` in hello and welcome).
 */
import { z } from "zod";
import { coordinatorWords, instant } from "./fields.ts";
import { publicKey, signature } from "./identity.ts";

/** How long a signature is valid. Clocks differ, and a request may wait in a site's queue. */
export const signatureSeconds = 300;

/** How long verifiers may cache the key set, and so how long a blocked crawler may still verify. */
export const keySetMaxAgeSeconds = 300;

/** Maximum difference of a crawler's clock from the coordinator's. With a larger one, signatures would be invalid. */
export const mostClockDifferenceSeconds = 60;

/** `signature` is made by the identity and `possession` by the new key, both over `signingKeyText`. */
export const crawlerSigningKey = z.object({
  type: z.literal("crawler:signing-key"),
  publicKey,
  at: instant,
  signature,
  possession: signature,
});

export type SigningKeyAnnouncement = z.infer<typeof crawlerSigningKey>;

/** Returns the statement, to be signed, that this key signs requests for the holder of this identity. */
export function signingKeyText(said: {
  readonly identity: string;
  readonly publicKey: string;
  readonly at: string;
}): string {
  return ["nearcrawl signing key 1", said.identity, said.publicKey, said.at].join("\n");
}

/**
 *   ended           it was replaced, or its time is over: make another
 *   taken           it is another crawler's, or an identity's: make another
 *   clock           the crawler's clock is wrong: signatures would be of another time
 *   bad-signature   one of the two is wrong
 *   too-many        too many are published already, or were announced in the last hour
 */
const signingKeyRefusals = ["ended", "taken", "clock", "bad-signature", "too-many"] as const;

export const coordinatorSigningKey = z.object({
  type: z.literal("coordinator:signing-key"),
  publicKey,
  /** Null if the key is not published. */
  published: z
    .object({
      /** After how many seconds the key may be used, because a verifier's cached key set may lack it before. */
      useInSeconds: z.int().min(0).max(86_400),
      /** No signature may be valid beyond this instant, which equals `exp` in the key set. */
      expiresAt: instant,
    })
    .nullable(),
  refusal: z.enum(signingKeyRefusals).nullable(),
  reason: coordinatorWords,
});

export type SigningKeyAnswer = z.infer<typeof coordinatorSigningKey>;

/** Asks for another key. The current one stays in use until the new one can be used. */
export const coordinatorRenewSigningKey = z.object({
  type: z.literal("coordinator:renew-signing-key"),
  reason: coordinatorWords,
});
