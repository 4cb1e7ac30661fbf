/** Random secrets, and their digests: as tests and the coordinator make them. */

/** How secrets are made and in which form they are kept. */
export interface Secrets {
  /** 256 random bits in base64url after the prefix, and their hash. */
  make(prefix?: string): { readonly secret: string; readonly hash: string };
  /** SHA-256 in hex. */
  hash(secret: string): string;
}
