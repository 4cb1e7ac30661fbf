/**
 * Who a crawler is, beyond the name that it states: an Ed25519 key pair of its own (RFC 8032), made on the
 * partner's machine and never leaving it, and what is signed with it. The texts that are signed are made here,
 * for both ends; each begins with a line of its own, so that no signature stands for anything else.
 */
import { z } from "zod";

/** The coordinator's answer to the WebSocket upgrade carries 32 random bytes in base64url under this header. */
export const challengeHeader = "nearcrawl-challenge";

/** 32 bytes in base64url, without padding. */
const bytes32 = z.string().regex(/^[A-Za-z0-9_-]{43}$/);
/** The raw 32 bytes of an Ed25519 public key in base64url. */
export const publicKey = bytes32;
/** The 64 bytes of an Ed25519 signature in base64url. */
export const signature = z.string().regex(/^[A-Za-z0-9_-]{86}$/);
/** Random bytes that one side made, at least 32 of them, in base64url. */
export const challenge = z.string().regex(/^[A-Za-z0-9_-]{43,128}$/);
/** What a crawler shows at its next session to have been at this one; new with every welcome. */
export const ticket = bytes32;

/** What a key is good for. `probe`: measurements; `crawl`: leases and results, too. */
export const keyScopes = ["probe", "crawl"] as const;
export const keyScope = z.enum(keyScopes);
export type KeyScope = z.infer<typeof keyScope>;

export const helloIdentity = z.object({
  publicKey,
  /** Of `helloText`, with the challenge of this connection. */
  signature,
  /** Of the process: another one with the same identity at the same time is a copy of its folder. */
  instanceId: z.uuid(),
  /** Of the last welcome that was kept; null at first. */
  ticket: ticket.nullable(),
});
export type HelloIdentity = z.infer<typeof helloIdentity>;

/** What is signed to show, now and on this connection, that the crawler holds its private key. */
export function helloText(said: {
  readonly challenge: string;
  readonly name: string;
  readonly spoolId: string;
  readonly instanceId: string;
  readonly ticket: string | null;
}): string {
  const { challenge: given, name, spoolId, instanceId, ticket: kept } = said;
  return ["nearcrawl hello 3", given, name, spoolId, instanceId, kept ?? "-"].join("\n");
}

/**
 * What is signed for results in a row, `first` to `last` of a spool: `digest` is the SHA-256 (hex) over the bytes
 * in which they were packed, in order.
 */
export function sealText(sealed: {
  readonly spoolId: string;
  readonly first: number;
  readonly last: number;
  readonly digest: string;
}): string {
  const { spoolId, first, last, digest } = sealed;
  return ["nearcrawl results 3", spoolId, first, last, digest].join("\n");
}
