/** Parses JSON from untrusted sources and returns null when it is malformed or does not match the schema. */
import { readFileSync, statSync } from "node:fs";
import type { z } from "zod";

export function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

export function jsonIn<Schema extends z.ZodType>(
  path: string,
  mostBytes: number,
  schema: Schema,
): z.infer<Schema> | null {
  try {
    if (statSync(path).size > mostBytes) return null;
    return schema.safeParse(jsonOf(readFileSync(path, "utf8"))).data ?? null;
  } catch {
    return null;
  }
}
