/** JSON that somebody else may have written: what is none, or not what it is to be, is null. */
import { readFileSync, statSync } from "node:fs";
import type { z } from "zod";

export function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** Of a file; null, too, where there is none, or one that is longer. */
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
