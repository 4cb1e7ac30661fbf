/**
 * What the coordinator publishes of its fleet for whoever wants to know who asks: addresses
 * (draft-illyes-webbotauth-jafar-00, April 2026) and keys (draft-ietf-webbotauth-httpsig-protocol-01, October 2026).
 */
import { keyThumbprint } from "#protocol/identity";
import type { PublicKey } from "../crawlers/public-list-reads.ts";

export interface PublishedSettings {
  readonly userAgent: string;
  /** An e-mail address or a URL; null: the operator states none. */
  readonly contact: string | null;
  /** Fewest seconds between two requests to one host. */
  readonly politenessSeconds: number | null;
  readonly signRequests?: boolean;
  /** As sites reach it, by https; null or left out: they do not. */
  readonly keySetUrl?: string | null;
}

export const publishedPaths = {
  addresses: "/about-crawler/addresses.json",
  keys: "/.well-known/http-message-signatures-directory",
} as const;

const secondsOf = (time: Date) => Math.floor(time.getTime() / 1000);

/** RFC 7517, RFC 8037. An identity, with which older crawlers sign, has no `nbf` and `exp`. */
export function jwkOf({ publicKey: x, from, until }: PublicKey): object {
  const times = from === null || until === null ? {} : { nbf: secondsOf(from), exp: secondsOf(until) };
  return { kty: "OKP", crv: "Ed25519", kid: keyThumbprint(x), x, use: "sig", ...times };
}

/** One prefix per address. */
export function prefixesOf(addresses: readonly string[]): object[] {
  return addresses.map((address) =>
    address.includes(":") ? { ipv6Prefix: `${address}/128` } : { ipv4Prefix: `${address}/32` },
  );
}

const dayMs = 86_400_000;

export const startOfDay = (now: Date) => new Date(Math.floor(now.getTime() / dayMs) * dayMs);
