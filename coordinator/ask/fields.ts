/** The fields of what an operation takes, by its schema: for forms, for filters, for commands. */
import { z } from "zod";

export interface Field {
  readonly name: string;
  /** Of its form field: the schema's title, or else its description. */
  readonly label: string;
  readonly words: string;
  readonly type: string;
  readonly isDate: boolean;
  readonly isNeeded: boolean;
  /** Null can be given. */
  readonly mayBeNone: boolean;
  readonly choices: readonly string[] | undefined;
  /** Told by its name: people type it with a unit. */
  readonly isBytes: boolean;
  /** What they mean, for people. */
  readonly choiceWords: Readonly<Record<string, string>>;
  /** Between several of them, which may stand in a line of their own or, where no space is part of one, behind another. */
  readonly between: RegExp;
  /** Characters at most. */
  readonly mostLength: number | undefined;
  readonly example: string;
  readonly usual: unknown;
  /** Of several lines. */
  readonly isLong: boolean;
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
  readonly items?: Shape;
  /** As several tools that show descriptions of APIs have it. */
  readonly "x-enumDescriptions"?: Readonly<Record<string, string>>;
  readonly properties?: Readonly<Record<string, Shape>>;
  readonly required?: readonly string[];
}

type Named = Readonly<Record<string, Shape>>;

const known = new WeakMap<z.ZodType, readonly Field[]>();

/** Read once from each schema. */
export function fieldsIn(schema: z.ZodType): readonly Field[] {
  const found = known.get(schema);
  if (found !== undefined) return found;
  // Within another, since one that has a name would be a reference alone.
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

/** A text of more than so many characters has several lines in a form. */
const longText = 2100;

/** In a list, what is no longer is a name. */
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
    isBytes: /bytes/i.test(name) && (type === "integer" || type === "number"),
    between: betweenItems(item),
    mostLength: shape.maxLength,
    example: typeof shape.example === "object" ? "" : String(shape.example ?? ""),
    usual: shape.default,
    isDate: shape.format === "date",
    isLong: type === "array" || (shape.maxLength ?? 0) > longText,
  };
}

/**
 * What a text in an address, a form or a command means. An empty one is null where there may be none, and else left out; what
 * is no number stays a text, to be refused by its name.
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

/** Bytes as people type them: the number loses nothing. */
const bytesTyped = (bytes: number) => (bytes < bytesOf.M ? String(bytes) : `${bytes / bytesOf.G} GB`);

/** As it stands in a form. */
export function textOf(value: unknown, { isBytes }: Pick<Field, "isBytes"> = { isBytes: false }): string {
  if (value === null || value === undefined) return "";
  if (value === true) return "yes";
  if (isBytes && typeof value === "number") return bytesTyped(value);
  return Array.isArray(value) ? value.join("\n") : String(value);
}
