/** The audit log: every change of what the system does, by whom, and what was before. */

const auditVias = ["page", "api", "command", "coordinator"] as const;

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
  readonly actor?: string | undefined;
  readonly action?: string | undefined;
  readonly target?: string | undefined;
  /** From here on, and before then. */
  readonly since?: Date | undefined;
  readonly until?: Date | undefined;
  /** Entries before this one; left out: from the latest. */
  readonly beforeId?: number | undefined;
  readonly limit: number;
}

export interface AuditLog {
  record(entry: Omit<AuditEntry, "entryId">): Promise<void>;
  /** The latest first. */
  list(query: AuditQuery): Promise<{ readonly entries: readonly AuditEntry[]; readonly more: boolean }>;
}

/** Before and after side by side: what is different, field by field, for people. */

interface ChangedField {
  /** `limits.pagesPerDay`; empty: the value itself. */
  readonly field: string;
  /** Null: it was, or is, not there. */
  readonly before: string | null;
  readonly after: string | null;
}

const mostFields = 40;
const mostDepth = 4;

/** Fields that are the same on both sides are left out. */
export function changedFields(before: unknown, after: unknown): ChangedField[] {
  const [old, fresh] = [flat(before), flat(after)];
  const names = [...new Set([...old.keys(), ...fresh.keys()])];
  return names
    .map((field) => ({ field, before: old.get(field) ?? null, after: fresh.get(field) ?? null }))
    .filter((one) => one.before !== one.after)
    .slice(0, mostFields);
}

function flat(value: unknown, prefix = "", depth = 0): Map<string, string> {
  if (value === undefined || value === null) return new Map(prefix === "" ? [] : [[prefix, "none"]]);
  if (typeof value !== "object" || Array.isArray(value) || depth >= mostDepth)
    return new Map([[prefix, textOf(value)]]);
  return new Map(
    Object.entries(value).flatMap(([name, inner]) => [
      ...flat(inner, prefix === "" ? name : `${prefix}.${name}`, depth + 1),
    ]),
  );
}

function textOf(value: unknown): string {
  if (typeof value === "string") return value;
  if (Array.isArray(value) && value.every((one) => typeof one !== "object"))
    return value.join(", ") || "none";
  return JSON.stringify(value);
}
