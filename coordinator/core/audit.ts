/** The audit log: every change of what the system does, by whom, and what was before. */

export const auditVias = ["page", "api", "command", "coordinator"] as const;
/** Through what it was changed; `coordinator`: it did so by itself, such as a release that it held. */
export type AuditVia = (typeof auditVias)[number];

/** What was changed, as whoever changes it says; small: before and after are bounded when they are kept. */
export interface Change {
  /** Kebab-case, in the past: `crawler-drained`, `policy-changed`. */
  readonly action: string;
  /** The crawler, subnet, token … that it happened to; null: to all of it. */
  readonly target: string | null;
  /** A sentence for people. */
  readonly words: string;
  /** JSON values, without secrets; left out where there is nothing to tell. */
  readonly before?: unknown;
  readonly after?: unknown;
}

export interface AuditEntry extends Change {
  readonly entryId: number;
  readonly at: Date;
  /** `anna`, `token dashboard`, `root on db1` (a command: the system's user), `coordinator`. */
  readonly actor: string;
  readonly via: AuditVia;
  readonly remoteAddress: string | null;
}

export interface AuditQuery {
  readonly actor?: string;
  readonly action?: string;
  readonly target?: string;
  /** From here on, and before then. */
  readonly since?: Date;
  readonly until?: Date;
  /** Entries before this one; left out: from the latest. */
  readonly beforeId?: number;
  readonly limit: number;
}

export interface AuditLog {
  record(entry: Omit<AuditEntry, "entryId">): Promise<void>;
  /** The latest first. */
  list(query: AuditQuery): Promise<{ readonly entries: readonly AuditEntry[]; readonly more: boolean }>;
}
