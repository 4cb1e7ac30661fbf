/** Before and after side by side: what is different, field by field, for people. */

export interface ChangedField {
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
