/** Sign-in without passwords: one-time links and the sessions that they start. Both are stored as hashes. */
import type { Person, Scope } from "./actor.ts";
import type { CrawlerId } from "./ids.ts";

/** An unused link is valid for this many minutes. */
export const linkMinutes = { least: 1, most: 1440, usual: 15 } as const;

/** A session ends after `sessionIdleMs` without use, and in any case after `sessionMs`. */
export const sessionIdleMs = 8 * 3_600_000;

export const sessionMs = 7 * 86_400_000;

export interface SignInLink extends Person {
  readonly linkId: number;
  readonly issuedBy: string;
  readonly issuedAt: Date;
  readonly expiresAt: Date;
  readonly state: "open" | "used" | "expired" | "revoked";
}

export interface Session extends Person {
  readonly sessionId: number;
  readonly issuedBy: string;
  readonly startedAt: Date;
  readonly lastUsedAt: Date;
  /** The latest possible end; a session that is not used ends earlier. */
  readonly endsAt: Date;
  readonly remoteAddress: string | null;
  readonly userAgent: string;
}

/** Where a request comes from, as it states itself. */
export interface Whence {
  readonly remoteAddress: string | null;
  readonly userAgent: string;
}

export interface SignInLinkStore {
  issue(
    link: Pick<SignInLink, keyof Person | "issuedBy" | "issuedAt" | "expiresAt"> & {
      readonly linkHash: string;
    },
  ): Promise<number>;
  find(linkHash: string, now: Date): Promise<SignInLink | null>;
  /** Returns those names that belong to no crawler and to no open invitation. */
  unknownCrawlers(names: readonly string[], now: Date): Promise<string[]>;
  open(now: Date): Promise<SignInLink[]>;
  revoke(linkId: number, now: Date): Promise<SignInLink | null>;
  /**
   * Uses the link up and starts this session. Returns null when the link was not open. Only one of two concurrent requests
   * gets it.
   */
  redeem(
    linkHash: string,
    session: Whence & { readonly sessionHash: string; readonly endsAt: Date },
    now: Date,
  ): Promise<Session | null>;
}

export interface SessionStore {
  /** Returns the valid session with this hash and its pending message, and records the use. Returns null when there is none. */
  use(
    sessionHash: string,
    whence: Whence,
    now: Date,
  ): Promise<(Session & { readonly said: string | null }) | null>;
  /** Lists the valid sessions (only those of `name` if given), the last used first. */
  list(now: Date, name?: string): Promise<Session[]>;
  end(
    which: { readonly sessionId: number } | { readonly name: string; readonly exceptId: number },
  ): Promise<number>;
  say(sessionId: number, words: string): Promise<void>;
  takeSaid(sessionId: number): Promise<string | null>;
}

export interface OperatorToken {
  readonly name: string;
  readonly scopes: readonly Scope[];
  readonly createdAt: Date;
  /** Null when the token never expires by itself. */
  readonly expiresAt: Date | null;
  readonly lastUsedAt: Date | null;
  readonly revokedAt: Date | null;
}

export interface OperatorTokenStore {
  /** Returns false when a token of that name exists or existed. */
  create(
    token: Pick<OperatorToken, "name" | "scopes" | "createdAt" | "expiresAt"> & {
      readonly tokenHash: string;
    },
  ): Promise<boolean>;
  list(): Promise<OperatorToken[]>;
  /** Returns false when there is no valid token of that name. */
  revoke(name: string, now: Date): Promise<boolean>;
  /** Returns the valid token with this hash and records the use, or null. */
  use(tokenHash: string, now: Date): Promise<OperatorToken | null>;
}

/** A crawler that will be asked for a new key. */
export interface AskedRotation {
  readonly name: string;
  readonly online: boolean;
}

export interface AskedSigningKey {
  readonly name: string;
  /** A connected crawler is asked at once, any other when it connects next. */
  readonly online: boolean;
}

export interface FleetKeys {
  /**
   * Blocks a crawler, whichever key it presents, and notifies running coordinators. Returns null when no crawler has that
   * name.
   */
  revoke(name: string, now: Date): Promise<CrawlerId | null>;
  /**
   * Asks the named crawler, or all if null, for a new key, and notifies running coordinators. The previous key stays valid
   * for `graceHours` after the new one has arrived. Blocked crawlers and those without an identity are left out.
   */
  askRotation(
    name: string | null,
    asked: { readonly graceHours: number; readonly now: Date },
  ): Promise<AskedRotation[]>;
  /** Asks the named crawler, or all that make signing keys if null, for another signing key. Notifies running coordinators. */
  askSigningKey(name: string | null, now: Date): Promise<AskedSigningKey[]>;
}

export interface Secrets {
  /** Makes a secret (the prefix and 256 random bits in base64url) and its hash. */
  make(prefix?: string): { readonly secret: string; readonly hash: string };
  hash(secret: string): string;
}
