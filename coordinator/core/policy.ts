/**
 * A setting that operators may change while the coordinator runs: its schema has the bounds and the default, and what
 * people are told of it stands with that. `PolicyName` (settings/schema) has the names of all, from the sections they are in.
 */
import { z } from "zod";

export interface PolicyWords {
  readonly title: string;
  /** One sentence: what it does, and what more or less of it costs. */
  readonly help: string;
  /** As it is written after the value; null: it has none. */
  readonly unit: string | null;
  /** Where the default comes from: a paper's section, a measurement, or our own judgement. */
  readonly origin: string;
  /** One of the dozen that people turn; left out: it is shown among all of them. */
  readonly basic?: true;
  /** It decides probe rounds: what a change would come to is told by the latest ones, played again (settings/preview). */
  readonly replayed?: true;
}

declare const mark: unique symbol;

/** Marked for types alone. */
type Policy<Schema> = Schema & { readonly [mark]: true };

/** The policies' names in a section, each after `Prefix`. */
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
  /** With the section's before it: `probe.pace.atOnce`. */
  readonly name: string;
  /** Of the value itself: one that is missing is refused. */
  readonly schema: z.ZodType;
}

/** Of a section, in its order. */
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

/** Of a span: above 0, and `most` at most. */
export const seconds = (most: number) => z.number().positive().max(most);
