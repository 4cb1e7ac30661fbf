/** The fields that a schema describes, in the form that forms, filters and commands need. */

import { z } from "zod";

export interface Field {
  readonly name: string;
  /** The label of its form field: the schema's title, or else its description. */
  readonly label: string;
  readonly words: string;
  readonly type: string;
  readonly isDate: boolean;
  readonly isNeeded: boolean;
  readonly mayBeNone: boolean;
  readonly choices: readonly string[] | undefined;
  /** Whether it is a number of bytes, which may be typed with a unit. This is derived from the name. */
  readonly isBytes: boolean;
  readonly choiceWords: Readonly<Record<string, string>>;
  /** What it means to choose none. */
  readonly unchosen: string;
  /** The separator of list entries: a line end, or white space if no entry can contain any. */
  readonly between: RegExp;
  readonly mostLength: number | undefined;
  readonly example: string;
  readonly usual: unknown;
  /** Whether its form field has several lines. */
  readonly isLong: boolean;
  /** Whether only programs, and forms that state its value, send it. */
  readonly isHidden: boolean;
}

interface Shape {
  readonly type?: string;
  readonly format?: string;
  readonly enum?: readonly unknown[];
  readonly anyOf?: readonly Shape[];
  readonly title?: string;
  readonly description?: string;
  readonly maxLength?: number;
  readonly example?: unknown;
  readonly default?: unknown;
  readonly $ref?: string;
  /** `hidden` means sent by programs and by forms that state its value, `long` means several lines. */
  readonly "x-field"?: "hidden" | "long";
  readonly "x-unchosen"?: string;
  readonly items?: Shape;
  /** The extension with which several tools describe enumeration values. */
  readonly "x-enumDescriptions"?: Readonly<Record<string, string>>;
  readonly properties?: Readonly<Record<string, Shape>>;
  readonly required?: readonly string[];
}

type Named = Readonly<Record<string, Shape>>;

const known = new WeakMap<z.ZodType, readonly Field[]>();

/** Each schema is read once and cached. */
export function fieldsIn(schema: z.ZodType): readonly Field[] {
  const found = known.get(schema);
  if (found !== undefined) return found;
  // The schema is wrapped because a named one alone would become a reference.
  const { properties, $defs = {} } = z.toJSONSchema(z.object({ it: schema }), {
    ...{ io: "input", unrepresentable: "any" },
  } as const) as unknown as { readonly properties: { readonly it: Shape }; readonly $defs?: Named };
  const whole = named(properties.it, $defs);
  const fields = Object.entries(whole.properties ?? {}).map(([name, shape]) =>
    fieldOf(name, shape, { all: $defs, isNeeded: whole.required?.includes(name) ?? false }),
  );
  known.set(schema, fields);
  return fields;
}

const named = (shape: Shape, all: Named): Shape => ({
  ...all[shape.$ref?.replace("#/$defs/", "") ?? ""],
  ...shape,
});

/** A longer text gets several lines in a form. */
const longText = 2100;

/** A list entry with at most this many characters is a name without white space. */
const longName = 63;

function betweenItems({ format, maxLength = Number.POSITIVE_INFINITY }: Shape): RegExp {
  if (format === "uri-reference") return /\s+/;
  return maxLength <= longName ? /[\s,]+/ : /\n/;
}

function fieldOf(
  name: string,
  given: Shape,
  { all, isNeeded }: { readonly all: Named; readonly isNeeded: boolean },
): Field {
  const value = given.anyOf?.map((one) => named(one, all)).find(({ type }) => type !== "null") ?? {};
  const shape = { ...value, ...named(given, all) };
  const type = shape.type ?? value.type ?? "string";
  const words = (shape.description ?? "").replace(/\.$/, "");
  const item = shape.items === undefined ? {} : named(shape.items, all);
  const listed = item.enum ?? shape.enum;
  return {
    ...{ name, type, words, isNeeded, label: shape.title ?? (words || name) },
    mayBeNone: given.anyOf?.some((one) => named(one, all).type === "null") ?? false,
    choices: listed?.every((one) => typeof one === "string") ? (listed as string[]) : undefined,
    choiceWords: item["x-enumDescriptions"] ?? shape["x-enumDescriptions"] ?? {},
    unchosen: shape["x-unchosen"] ?? "–",
    isBytes: /bytes/i.test(name) && (type === "integer" || type === "number"),
    between: betweenItems(item),
    mostLength: shape.maxLength,
    example: typeof shape.example === "object" ? "" : String(shape.example ?? ""),
    usual: shape.default,
    isDate: shape.format === "date",
    isHidden: shape["x-field"] === "hidden",
    isLong: type === "array" || shape["x-field"] === "long" || (shape.maxLength ?? 0) > longText,
  };
}

/**
 * Converts text from a URL, form or command. Empty text becomes null if null is allowed, and otherwise is left out. An
 * invalid number stays text, which the schema refuses.
 */
export function meaningOf({ type, mayBeNone, isBytes, between }: Field, text: string): unknown {
  const trimmed = text.trim();
  if (type === "array")
    return text
      .split(between)
      .map((line) => line.trim())
      .filter((line) => line !== "");
  if (trimmed === "") return mayBeNone ? null : undefined;
  if (type === "boolean") return ["on", "yes", "true", "1"].includes(trimmed);
  if (type !== "number" && type !== "integer") return text;
  const [, number, unit] = /^(-?\d{1,15}(?:\.\d+)?)(?: ?([kMGT])B)?$/.exec(trimmed) ?? [];
  if (number === undefined || (unit !== undefined && !isBytes)) return text;
  return unit === undefined
    ? Number(number)
    : Math.round(Number(number) * bytesOf[unit as keyof typeof bytesOf]);
}

const bytesOf = { k: 1e3, M: 1e6, G: 1e9, T: 1e12 } as const;

/** Formats bytes for a form: in GB from a megabyte on, with all digits. */
const bytesTyped = (bytes: number) => (bytes < bytesOf.M ? String(bytes) : `${bytes / bytesOf.G} GB`);

export function textOf(value: unknown, { isBytes }: Pick<Field, "isBytes"> = { isBytes: false }): string {
  if (value === null || value === undefined) return "";
  if (value === true) return "yes";
  if (isBytes && typeof value === "number") return bytesTyped(value);
  return Array.isArray(value) ? value.join("\n") : String(value);
}

// Says in a sentence what is wrong with an input, because zod's own messages name types and operators.

/** Matches zod's own messages. A schema's own text is kept. */
const zodsOwn = /^(Invalid (input|option|string|key)|Too (big|small)|Unrecognized key)/;

const kinds: Readonly<Record<string, string>> = {
  number: "a number",
  int: "a whole number",
  string: "a text",
  boolean: "yes or no",
  array: "a list",
  object: "an object",
};

export function issueWords(issue: z.core.$ZodIssue): string {
  if (issue.code === "invalid_value") return `must be one of ${issue.values.join(", ")}`;
  if (issue.code === "custom" || !zodsOwn.test(issue.message)) return issue.message;
  switch (issue.code) {
    case "invalid_type":
      if (/received undefined$/.test(issue.message)) return "is missing";
      return `must be ${kinds[issue.expected] ?? issue.expected}`;
    case "too_small":
      if (issue.origin === "string" || issue.origin === "array")
        return Number(issue.minimum) <= 1
          ? "is missing"
          : `needs at least ${issue.minimum} ${unitOf(issue.origin)}`;
      return `must be ${issue.inclusive === false ? "more than" : "at least"} ${issue.minimum}`;
    case "too_big":
      if (issue.origin === "string" || issue.origin === "array")
        return `has more than ${issue.maximum} ${unitOf(issue.origin)}`;
      return `must be ${issue.inclusive === false ? "less than" : "at most"} ${issue.maximum}`;
    case "unrecognized_keys":
      return `has no field ${issue.keys.join(", ")}`;
    default:
      return issue.message;
  }
}

const unitOf = (origin: string) => (origin === "string" ? "characters" : "entries");
