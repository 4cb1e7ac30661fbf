/** The audit log: every change to the system's behaviour, its author and the previous value. */

const auditVias = ["page", "api", "command", "coordinator"] as const;

/** `coordinator` marks changes that the coordinator made by itself, such as holding a release. */
export type AuditVia = (typeof auditVias)[number];

/** One change as its author reports it. The store bounds the size of `before` and `after`. */
export interface Change {
  /** Kebab-case, past tense: `crawler-drained`, `policy-changed`. */
  readonly action: string;
  /** The crawler, subnet or token that was changed; null when the change concerns the whole system. */
  readonly target: string | null;
  readonly words: string;
  /** The values before and after as JSON, without secrets; each is absent if there was none. */
  readonly before?: unknown;
  readonly after?: unknown;
}

export interface AuditEntry extends Change {
  readonly entryId: number;
  readonly at: Date;
  /** Such as `anna`, `token dashboard`, `root on db1` (the system user of a command) or `coordinator`. */
  readonly actor: string;
  readonly via: AuditVia;
  readonly remoteAddress: string | null;
}

export interface AuditQuery {
  readonly actor?: string | undefined;
  readonly action?: string | undefined;
  readonly target?: string | undefined;
  /** The range of time; `since` is inclusive, `until` exclusive. */
  readonly since?: Date | undefined;
  readonly until?: Date | undefined;
  /** Only entries before this one. If absent, the list starts with the latest. */
  readonly beforeId?: number | undefined;
  readonly limit: number;
}

export interface AuditLog {
  record(entry: Omit<AuditEntry, "entryId">): Promise<void>;
  list(query: AuditQuery): Promise<{ readonly entries: readonly AuditEntry[]; readonly more: boolean }>;
}

/** One field that differs between before and after, as text. */

interface ChangedField {
  /** Such as `limits.pagesPerDay`; empty when the value itself differs. */
  readonly field: string;
  /** Null when the field was absent. */
  readonly before: string | null;
  readonly after: string | null;
}

const mostFields = 40;
const mostDepth = 4;

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
