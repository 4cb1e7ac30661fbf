/**
 * Settings that operators may change at run time. Each has a schema with its bounds and default, and the text shown to people.
 * `PolicyName` (settings/schema) derives all names from the sections.
 */
import { z } from "zod";

export interface PolicyWords {
  readonly title: string;
  /** One sentence: what the setting does and what a higher or lower value costs. */
  readonly help: string;
  readonly unit: string | null;
  /** Where the default comes from: a paper's section, a measurement or our own judgement. */
  readonly origin: string;
  /** Marks one of the dozen settings that are usually changed. The others appear only in the full list. */
  readonly basic?: true;
  /** Marks a setting that affects probe rounds, so that a preview replays the latest ones (settings/preview). */
  readonly replayed?: true;
}

declare const mark: unique symbol;

type Policy<Schema> = Schema & { readonly [mark]: true };

export type PolicyNames<Section, Prefix extends string> =
  Section extends z.ZodObject<infer Shape>
    ? {
        [Name in keyof Shape & string]: Shape[Name] extends Policy<unknown>
          ? `${Prefix}${Name}`
          : Shape[Name] extends z.ZodPrefault<infer Inner>
            ? PolicyNames<Inner, `${Prefix}${Name}.`>
            : never;
      }[keyof Shape & string]
    : never;

const wordsOf = new WeakMap<z.ZodType, PolicyWords>();

export function policy<Schema extends z.ZodType>(schema: Schema, words: PolicyWords): Policy<Schema> {
  wordsOf.set(schema, words);
  return schema as Policy<Schema>;
}

interface PolicySetting extends PolicyWords {
  readonly name: string;
  /** The schema of the value. It has no default, so a missing value is refused. */
  readonly schema: z.ZodType;
}

export function policiesIn(section: z.ZodType, prefix: string): PolicySetting[] {
  const inner = section instanceof z.ZodPrefault ? section.unwrap() : section;
  if (!(inner instanceof z.ZodObject)) return [];
  return Object.entries(inner.shape as Record<string, z.ZodType>).flatMap(([key, schema]) => {
    const name = `${prefix}.${key}`;
    const words = wordsOf.get(schema);
    if (words === undefined) return policiesIn(schema, name);
    return [{ ...words, name, schema: (schema as z.ZodDefault<z.ZodType>).unwrap() }];
  });
}

export const seconds = (most: number) => z.number().positive().max(most);

export type DeepReadonly<Value> = Value extends object
  ? { readonly [Name in keyof Value]: DeepReadonly<Value[Name]> }
  : Value;

/** Returns an object that reads each property from `now()` on access. */
export function following<Settings extends object>(now: () => Settings): Settings {
  return readAnew((name) => now()[name as keyof Settings]);
}

/** The keys of the object cannot be listed, because spreading or copying it would freeze the values. */
export function readAnew<Settings extends object>(read: (name: string | symbol) => unknown): Settings {
  return new Proxy({} as Settings, {
    get: (_, name) => read(name),
    ownKeys: () => {
      throw new Error("settings that follow the policies are read when they are needed, and never copied");
    },
  });
}
