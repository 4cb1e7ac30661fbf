/** Sign-in without passwords: links that are good once, and the sessions that they begin. Both are kept as hashes. */
import type { Person, Scope } from "./actor.ts";
import type { CrawlerId } from "./ids.ts";

/** How long an unused link is good, in minutes. */
export const linkMinutes = { least: 1, most: 1440, usual: 15 } as const;

/** A session ends when nobody has used it for so long, and in any case after so long. */
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
  /** Who had issued the link. */
  readonly issuedBy: string;
  readonly startedAt: Date;
  readonly lastUsedAt: Date;
  /** In any case; earlier when nobody uses it. */
  readonly endsAt: Date;
  /** Where it was used last, and with which browser. */
  readonly remoteAddress: string | null;
  readonly userAgent: string;
}

/** What a request tells of where it comes from. */
export interface Whence {
  readonly remoteAddress: string | null;
  readonly userAgent: string;
}

export interface SignInLinkStore {
  /** Its number. */
  issue(
    link: Pick<SignInLink, keyof Person | "issuedBy" | "issuedAt" | "expiresAt"> & {
      readonly linkHash: string;
    },
  ): Promise<number>;
  find(linkHash: string, now: Date): Promise<SignInLink | null>;
  /** Those of the names that are no crawler's, and that no open invitation has. */
  unknownCrawlers(names: readonly string[], now: Date): Promise<string[]>;
  /** Those that can still be used, the latest first. */
  open(now: Date): Promise<SignInLink[]>;
  /** Null: there is no open link of this number. */
  revoke(linkId: number, now: Date): Promise<SignInLink | null>;
  /** The link opens nothing more, and this session is there; null: the link was not open. One of two at once gets it. */
  redeem(
    linkHash: string,
    session: Whence & { readonly sessionHash: string; readonly endsAt: Date },
    now: Date,
  ): Promise<Session | null>;
}

export interface SessionStore {
  /** The good session that hashes so, noted as used, with what it has to be told; null: there is none. */
  use(
    sessionHash: string,
    whence: Whence,
    now: Date,
  ): Promise<(Session & { readonly said: string | null }) | null>;
  /** Good ones, the latest used first; of one person where a name is given. */
  list(now: Date, name?: string): Promise<Session[]>;
  /** Ends one, or all of a name (but for one); how many there were. */
  end(
    which: { readonly sessionId: number } | { readonly name: string; readonly exceptId: number },
  ): Promise<number>;
  /** Shown on its next page. */
  say(sessionId: number, words: string): Promise<void>;
  /** What there was to say, which is then said. */
  takeSaid(sessionId: number): Promise<string | null>;
}

export interface OperatorToken {
  readonly name: string;
  readonly scopes: readonly Scope[];
  readonly createdAt: Date;
  /** Null: when it is revoked. */
  readonly expiresAt: Date | null;
  readonly lastUsedAt: Date | null;
  readonly revokedAt: Date | null;
}

export interface OperatorTokenStore {
  /** False: there is, or was, a token of that name. */
  create(
    token: Pick<OperatorToken, "name" | "scopes" | "createdAt" | "expiresAt"> & {
      readonly tokenHash: string;
    },
  ): Promise<boolean>;
  /** By name. */
  list(): Promise<OperatorToken[]>;
  /** False: there is no good token of that name. */
  revoke(name: string, now: Date): Promise<boolean>;
  /** The good token that hashes so, noted as used; null: there is none. */
  use(tokenHash: string, now: Date): Promise<OperatorToken | null>;
}

/** A crawler that is to get a new key. */
export interface AskedRotation {
  readonly name: string;
  readonly online: boolean;
}

export interface AskedSigningKey {
  readonly name: string;
  /** It is asked now; else when it comes next. */
  readonly online: boolean;
}

export interface FleetKeys {
  /** Shuts a crawler out, whatever key it shows; null: there is none of that name. Running coordinators are told. */
  revoke(name: string, now: Date): Promise<CrawlerId | null>;
  /**
   * Asks for a new key of this crawler (null: of all), the one before good for so long after the new one has
   * arrived. Crawlers without an identity, and those shut out, are left out. Running coordinators are told.
   */
  askRotation(
    name: string | null,
    asked: { readonly graceHours: number; readonly now: Date },
  ): Promise<AskedRotation[]>;
  /** Asks for another signing key of this crawler (null: of all that make some). Running coordinators are told. */
  askSigningKey(name: string | null, now: Date): Promise<AskedSigningKey[]>;
}

/** How secrets are made and in which form they are kept. */
export interface Secrets {
  /** 256 random bits in base64url after the prefix, and their hash. */
  make(prefix?: string): { readonly secret: string; readonly hash: string };
  /** SHA-256 in hex. */
  hash(secret: string): string;
}
