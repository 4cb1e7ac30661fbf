/**
 * Operations of the API, described in zod. Routes take their path, scope and body check from the description, and the OpenAPI
 * document is made from it.
 */
import { z } from "zod";
import type { Scope } from "#core/actor";
import { crawlerName } from "#protocol/invitation";
import type { PageEntry } from "./navigation.ts";

export interface ApiAnswer<Value extends z.ZodType = z.ZodType> {
  readonly description: string;
  /** Absent if the answer has no relevant body. */
  readonly schema?: Value;
  readonly example?: unknown;
  /** Named examples. */
  readonly examples?: Readonly<Record<string, { readonly summary: string; readonly value: unknown }>>;
  /** Default: application/json. */
  readonly type?: string;
}

export interface ApiOperation {
  readonly method: HttpMethod;
  /** The path in OpenAPI form: `/api/channels/{number}/remove`. */
  readonly path: string;
  /** Null if the operation is public. */
  readonly needs: Scope | null;
  /** The answer depends on the token, although none is required. */
  readonly tokenToo?: true;
  readonly summary: string;
  readonly description?: string;
  /** Where its page appears in the navigation. Default: under the entry whose path is the longest prefix of this page's. */
  readonly navigation?: PageEntry;
  /** Additional search terms for its page. */
  readonly alsoFound?: string;
  /** Parameters without `.optional()` or `.default()` are required; `meta` holds examples. */
  readonly parameters?: Readonly<
    Partial<Record<"path" | "query" | "header", Readonly<Record<string, z.ZodType>>>>
  >;
  /** The schema that checks an action's body. */
  readonly body?: {
    readonly schema: z.ZodType;
    readonly example?: unknown;
    /** Default: application/json. */
    readonly type?: string;
  };
  readonly answers: Readonly<Record<number, ApiAnswer>>;
}

/** Operations by operationId. */
export type ApiOperations = Readonly<Record<string, ApiOperation>>;

/** A schema's value as stores return it: read-only, with Dates. */
export type ReadOf<Schema extends z.ZodType> = Read<z.infer<Schema>>;

type Read<Value> = [Date] extends [Value]
  ? Exclude<Value, string>
  : Value extends readonly (infer One)[]
    ? readonly Read<One>[]
    : Value extends object
      ? { readonly [Name in keyof Value]: Read<Value[Name]> }
      : Value;

/** A schema's value as JSON: times are texts. */
export type ToldOf<Schema extends z.ZodType> = Texts<z.infer<Schema>>;

type Texts<Value> = [Date] extends [Value]
  ? Exclude<Value, Date>
  : Value extends readonly (infer One)[]
    ? readonly Texts<One>[]
    : Value extends object
      ? { readonly [Name in keyof Value]: Texts<Value[Name]> }
      : Value;

/** Converts the path to Fastify's notation. */
export function routePath({ path }: ApiOperation): string {
  return path.replace(/\{(\w+)\}/g, ":$1");
}

/** A date-time text in JSON; routes may return a Date. */
export const dateTime = (): z.ZodType<Date | string> => z.string().meta({ format: "date-time" });

/** A strict object with an id in the OpenAPI document. */
export const record = <Fields extends z.ZodRawShape>(id: string, fields: Fields, description?: string) =>
  z.strictObject(fields).meta(description === undefined ? { id } : { id, description });

/** An object that may have further fields. */
export const openRecord = <Fields extends z.ZodRawShape>(id: string, fields: Fields, description?: string) =>
  z.object(fields).meta(description === undefined ? { id } : { id, description });

export const orNull = <Schema extends z.ZodType>(schema: Schema, description: string) =>
  schema.nullable().describe(description);

export const get = <Path extends string>(path: Path, needs: Scope | null) => {
  return { method: "get", path, needs } as const;
};
export const post = <Path extends string>(path: Path, needs: Scope | null) => {
  return { method: "post", path, needs } as const;
};

const errorSchema = z
  .strictObject({
    error: z.strictObject({ status: z.int(), message: z.string().describe("In plain words.") }),
  })
  .meta({ id: "Error" });

export const answer = <Value extends z.ZodType>(schema: Value, description = "The answer") => ({
  description,
  schema,
});

/** The body is `{error: {status, message}}`. */
export const errorAnswer = (description: string) => answer(errorSchema, description);

export const refusals = {
  401: errorAnswer("No token, or none that is good"),
  403: errorAnswer("The token is not good for this"),
};

export const tooMany = errorAnswer(
  "Too many requests, or too many failures, from this address; Retry-After says how long to wait",
);

interface DescribedOperations {
  readonly paths: Readonly<Record<string, Readonly<Partial<Record<HttpMethod, Operation>>>>>;
  readonly schemas: Readonly<Record<string, Schema>>;
}

/** The operations' part of the OpenAPI document, with every schema that has an id. */
export function describeOperations(operations: ApiOperations, tag: string): DescribedOperations {
  const paths: Record<string, Partial<Record<HttpMethod, Operation>>> = {};
  const schemas: Record<string, Schema> = {};
  for (const [operationId, one] of Object.entries(operations)) {
    const described = operationOf(operationId, one, (schema) => jsonSchema(schema, schemas));
    paths[one.path] = { ...paths[one.path], [one.method]: { ...described, tags: [tag] } };
  }
  return { paths, schemas };
}

/** Only operations that read may be open to everybody. */
const securityOf = ({ needs, tokenToo }: ApiOperation) => {
  if (needs === null && tokenToo === undefined) return undefined;
  return needs === null || needs === "read" ? [{}, { operatorToken: [] }] : [{ operatorToken: [] }];
};

/** Prefixes the description with the required scope, unless every reader may call the operation. */
function described({ needs, description }: ApiOperation): string | undefined {
  if (needs === null || needs === "read" || description?.startsWith("Scope ")) return description;
  return `Scope ${needs}.${description === undefined ? "" : ` ${description}`}`;
}

/** The default answers. */
const usualAnswers = ({ needs, body }: ApiOperation): ApiOperation["answers"] => ({
  ...(needs === null ? {} : { ...refusals, 429: tooMany }),
  ...(body === undefined ? {} : { 400: errorAnswer("The body is not as described") }),
});

type SchemaOf = (schema: z.ZodType) => Schema;

function operationOf(operationId: string, one: ApiOperation, schemaOf: SchemaOf): Operation {
  const { summary, body } = one;
  const description = described(one);
  const answers = { ...usualAnswers(one), ...one.answers };
  const security = securityOf(one);
  const parameters = Object.entries(one.parameters ?? {}).flatMap(([place, named]) =>
    Object.entries(named).map(([name, schema]) => parameterOf(name, place, schema, schemaOf)),
  );
  return {
    operationId,
    summary,
    ...(description === undefined ? {} : { description }),
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(body === undefined
      ? {}
      : {
          requestBody: {
            required: true,
            content: {
              [body.type ?? "application/json"]: contentOf(schemaOf(body.schema), body),
            },
          },
        }),
    responses: Object.fromEntries(
      Object.entries(answers).map(([status, answer]) => [status, responseOf(answer, schemaOf)]),
    ),
    ...(security === undefined ? {} : { security }),
  };
}

function parameterOf(name: string, place: string, zod: z.ZodType, schemaOf: SchemaOf): Parameter {
  const { description, example, ...schema } = schemaOf(zod);
  return {
    name,
    in: place,
    required: !zod.safeParse(undefined).success,
    ...(description === undefined ? {} : { description }),
    schema,
    ...(example === undefined ? {} : { example }),
  };
}

function responseOf(
  { description, schema, example, examples, type = "application/json" }: ApiAnswer,
  schemaOf: SchemaOf,
): { readonly description: string; readonly content?: Content } {
  if (schema === undefined) return { description };
  return { description, content: { [type]: contentOf(schemaOf(schema), { example, examples }) } };
}

interface Examples {
  readonly example?: unknown;
  readonly examples?: ApiAnswer["examples"] | undefined;
}

function contentOf(schema: Schema, { example, examples }: Examples) {
  return {
    schema,
    ...(example === undefined ? {} : { example }),
    ...(examples === undefined ? {} : { examples }),
  };
}

/** Collects schemas with an id in `named` and refers to them. */
function jsonSchema(schema: z.ZodType, named: Record<string, Schema>): Schema {
  // The schema is wrapped, because the outermost one is never a reference.
  const whole = z.toJSONSchema(z.object({ it: schema }), { io: "input" });
  for (const [name, one] of Object.entries(whole.$defs ?? {})) {
    const { id: _, ...found } = plain(one) as Schema;
    named[name] = found;
  }
  return plain(whole.properties?.it) as Schema;
}

/**
 * Simplifies zod's JSON schema: drops safe-integer bounds and permissive `additionalProperties`, and turns null into one of
 * the types.
 */
function plain(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value !== "object" || value === null) return value;
  const { minimum, maximum, anyOf, $ref, propertyNames, additionalProperties, ...rest } = value as Schema & {
    anyOf?: readonly Schema[];
  };
  const schema: Record<string, unknown> = Object.fromEntries(
    Object.entries(rest).map(([name, one]) => [name, isData(name) ? one : plain(one)]),
  );
  if (schema.type === "number" && rest.enum?.every(Number.isInteger)) schema.type = "integer";
  if ($ref !== undefined) schema.$ref = $ref.replace("#/$defs/", "#/components/schemas/");
  if (minimum !== undefined && minimum !== Number.MIN_SAFE_INTEGER) schema.minimum = plain(minimum);
  if (maximum !== undefined && maximum !== Number.MAX_SAFE_INTEGER) schema.maximum = plain(maximum);
  if (JSON.stringify(additionalProperties ?? {}) !== "{}") {
    schema.additionalProperties = plain(additionalProperties);
  }
  if (anyOf === undefined) return schema;
  const [first, second] = anyOf.map((one) => plain(one) as Schema);
  if (anyOf.length === 2 && second?.type === "null" && typeof first?.type === "string") {
    const listed = first.enum === undefined ? {} : { enum: [...first.enum, null] };
    return { ...schema, ...first, ...listed, type: [first.type, "null"] };
  }
  return { ...schema, oneOf: anyOf.map(plain) };
}

const isData = (keyword: string) => ["default", "example", "enum", "const"].includes(keyword);

/** The subset of OpenAPI 3.1 that we use. */

export type HttpMethod = "get" | "post" | "put" | "delete";

export interface Operation {
  readonly operationId: string;
  readonly summary: string;
  readonly description?: string;
  readonly tags?: readonly string[];
  readonly security?: readonly Readonly<Record<string, readonly string[]>>[];
  readonly parameters?: readonly (Parameter | { readonly $ref: string })[];
  readonly requestBody?: { readonly required?: boolean; readonly content: Content };
  readonly responses: Readonly<
    Record<string, { readonly description?: string; readonly content?: Content } | { readonly $ref: string }>
  >;
}

export interface Parameter {
  readonly name: string;
  readonly in: string;
  readonly required?: boolean;
  readonly description?: string;
  readonly schema?: Schema;
  readonly example?: unknown;
}

export type Content = Readonly<Record<string, { readonly schema?: Schema; readonly example?: unknown }>>;

export interface Schema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly description?: string;
  readonly enum?: readonly unknown[];
  readonly oneOf?: readonly Schema[];
  readonly required?: readonly string[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: boolean | Schema;
  readonly items?: Schema;
  readonly [keyword: string]: unknown;
}

export interface OpenApi {
  readonly openapi: string;
  readonly info: {
    readonly title: string;
    readonly version: string;
    readonly summary: string;
    readonly description: string;
  };
  readonly servers: readonly { readonly url: string }[];
  readonly paths: Readonly<Record<string, Readonly<Partial<Record<HttpMethod, Operation>>>>>;
  readonly components: {
    readonly schemas: Readonly<Record<string, Schema>>;
    readonly [kind: string]: Readonly<Record<string, unknown>>;
  };
  readonly [name: string]: unknown;
}

// Fields that several rooms' actions share.

export const pagesPerDay = z.int().min(0).max(1_000_000_000);

export const bytesPerDay = z.int().min(0).max(1e15);

/** The body of an action that is completely described by its path. */
export const nothingBody = z.strictObject({}).meta({ id: "Nothing" });

/** On a page, a destructive action requires `meant` to be typed (`confirmForm`). A program needs no confirmation. */
export function typedConfirmation(meant: string) {
  return z.string().max(100).optional().describe(`${meant}; left out: the request is enough.`);
}

/** Keeps impossible crawler names away from queries. */
export function isName(text: string): boolean {
  return crawlerName.safeParse(text).success;
}
