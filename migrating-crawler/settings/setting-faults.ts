/**
 * What is wrong with settings, in lines for people: which setting, what it must be, what it is; for a name that no
 * setting has, the one that was probably meant.
 */
import type { z } from "zod";
import { nearestName } from "./near-name.ts";

type Issue = z.core.$ZodIssue;
type Schema = z.core.$ZodType;

/** Values are shown up to so many characters; secrets never. */
const mostShown = 60;
/** Settings of earlier releases, and what is in their place. */
const gone: Readonly<Record<string, string>> = {
  userAgent: "the coordinator states it; your own address goes into contact",
};
const secrets = new Set(["key", "proxy", "coordinatorProxy"]);

/** Each begins with the setting's path and a colon: `limits.pagesPerDay: …`. */
export function settingFaults(error: z.ZodError, schema: Schema, settings: unknown): string[] {
  return error.issues.flatMap((issue) => faultsOf(issue, schema, settings));
}

function faultsOf(issue: Issue, schema: Schema, settings: unknown): string[] {
  const { path } = issue;
  if (issue.code === "unrecognized_keys") {
    const known = namesAt(schema, path);
    return issue.keys.map((key) => {
      const name = [...path, key].join(".");
      return `${name}: ${gone[name] ?? `there is no such setting${meant(key, known)}`}`;
    });
  }
  return [`${path.join(".") || "settings"}: ${issue.message}${shown(path, settings)}`];
}

function meant(key: string, known: readonly string[]): string {
  const near = nearestName(key, known);
  return near === null ? "" : `; is ${near} meant?`;
}

function shown(path: Issue["path"], settings: unknown): string {
  let value = settings;
  for (const step of path) value = (value as Record<PropertyKey, unknown> | null | undefined)?.[step];
  if (value === undefined || secrets.has(String(path[0]))) return "";
  const text = JSON.stringify(value) ?? String(value);
  return ` (it is ${text.length > mostShown ? `${text.slice(0, mostShown)}…` : text})`;
}

/** The names that settings may have at this place of the schema. */
function namesAt(schema: Schema, path: Issue["path"]): string[] {
  let at: Schema | undefined = schema;
  for (const step of path) at = shapeOf(at)?.[String(step)];
  return Object.keys(shapeOf(at) ?? {});
}

/** Of an object, also behind defaults and `nullable`. */
function shapeOf(schema: Schema | undefined): Readonly<Record<string, Schema>> | undefined {
  const def = schema?._zod.def as { innerType?: Schema; shape?: Record<string, Schema> } | undefined;
  return def?.shape ?? (def?.innerType === undefined ? undefined : shapeOf(def.innerType));
}
