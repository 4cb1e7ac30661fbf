/** What operators do to crawlers from the command line or with a token over HTTP. */
import type { Scope } from "./actor.ts";
import type { CrawlerId } from "./ids.ts";

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
}
