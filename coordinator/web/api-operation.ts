/**
 * An operation of the API: where it is, who may call it, what it takes and what it answers, in zod. The route takes its
 * address and scope from it and an action the check of its body; the OpenAPI document is made from the same object.
 */
import { z } from "zod";
import type { Scope } from "#core/actor";
import { crawlerName } from "#protocol/invitation";
import type { PageEntry } from "./navigation.ts";

export interface ApiAnswer<Value extends z.ZodType = z.ZodType> {
  readonly description: string;
  /** Left out: the answer has no body that matters. */
  readonly schema?: Value;
  readonly example?: unknown;
  /** Several, each under a name. */
  readonly examples?: Readonly<Record<string, { readonly summary: string; readonly value: unknown }>>;
  /** Left out: application/json. */
  readonly type?: string;
}

export interface ApiOperation {
  readonly method: HttpMethod;
  /** In the form of OpenAPI: `/api/channels/{number}/remove`. */
  readonly path: string;
  /** Null: whoever reaches it. */
  readonly needs: Scope | null;
  /** Of what needs none: the answer is about the token that is shown. */
  readonly tokenToo?: true;
  readonly summary: string;
  readonly description?: string;
  /** Where its page is in the navigation. Left out: below the page whose path its own begins with. */
  readonly navigation?: PageEntry;
  /** Other words by which people look for its page. */
  readonly alsoFound?: string;
  /** What has no `.optional()` or `.default()` has to be given; an example is in the schema's `meta`. */
  readonly parameters?: Readonly<
    Partial<Record<"path" | "query" | "header", Readonly<Record<string, z.ZodType>>>>
  >;
  /** Of an action: the same schema that checks what is sent. */
  readonly body?: {
    readonly schema: z.ZodType;
    readonly example?: unknown;
    /** Left out: application/json. */
    readonly type?: string;
  };
  readonly answers: Readonly<Record<number, ApiAnswer>>;
}

/** Operations of one group, each under its operationId. */
export type ApiOperations = Readonly<Record<string, ApiOperation>>;

/** As a store reads what a schema tells: nothing of it is changed, and its times are Dates. */
export type ReadOf<Schema extends z.ZodType> = Read<z.infer<Schema>>;

type Read<Value> = [Date] extends [Value]
  ? Exclude<Value, string>
  : Value extends readonly (infer One)[]
    ? readonly Read<One>[]
    : Value extends object
      ? { readonly [Name in keyof Value]: Read<Value[Name]> }
      : Value;

/** As it is told: its times are texts. */
export type ToldOf<Schema extends z.ZodType> = Texts<z.infer<Schema>>;

type Texts<Value> = [Date] extends [Value]
  ? Exclude<Value, Date>
  : Value extends readonly (infer One)[]
    ? readonly Texts<One>[]
    : Value extends object
      ? { readonly [Name in keyof Value]: Texts<Value[Name]> }
      : Value;

/** As Fastify has it. */
export function routePath({ path }: ApiOperation): string {
  return path.replace(/\{(\w+)\}/g, ":$1");
}

/** A text in JSON, which a route may give as the Date that becomes it. */
export const dateTime = (): z.ZodType<Date | string> => z.string().meta({ format: "date-time" });

/** An object of just these fields, by which the OpenAPI document knows it. */
export const record = <Fields extends z.ZodRawShape>(id: string, fields: Fields, description?: string) =>
  z.strictObject(fields).meta(description === undefined ? { id } : { id, description });

/** One that may have more fields. */
export const openRecord = <Fields extends z.ZodRawShape>(id: string, fields: Fields, description?: string) =>
  z.object(fields).meta(description === undefined ? { id } : { id, description });

export const orNull = <Schema extends z.ZodType>(schema: Schema, description: string) =>
  schema.nullable().describe(description);

/** What is looked at, and what is done. */
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

/** Of JSON. */
export const answer = <Value extends z.ZodType>(schema: Value, description = "The answer") => ({
  description,
  schema,
});

/** Of `{error: {status, message}}`. */
export const errorAnswer = (description: string) => answer(errorSchema, description);

/** Of who needs a token. */
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

/** Their part of the OpenAPI document, with every schema that has an id of its own. */
export function describeOperations(operations: ApiOperations, tag: string): DescribedOperations {
  const paths: Record<string, Partial<Record<HttpMethod, Operation>>> = {};
  const schemas: Record<string, Schema> = {};
  for (const [operationId, one] of Object.entries(operations)) {
    const described = operationOf(operationId, one, (schema) => jsonSchema(schema, schemas));
    paths[one.path] = { ...paths[one.path], [one.method]: { ...described, tags: [tag] } };
  }
  return { paths, schemas };
}

/** Reading is for everybody where the coordinator was told so; nothing else is. */
const securityOf = ({ needs, tokenToo }: ApiOperation) => {
  if (needs === null && tokenToo === undefined) return undefined;
  return needs === null || needs === "read" ? [{}, { operatorToken: [] }] : [{ operatorToken: [] }];
};

/** With the right that it takes, unless everybody who reads may. */
function described({ needs, description }: ApiOperation): string | undefined {
  if (needs === null || needs === "read" || description?.startsWith("Scope ")) return description;
  return `Scope ${needs}.${description === undefined ? "" : ` ${description}`}`;
}

/** What every operation of its kind answers, where it does not say otherwise. */
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

/** What has an id goes to `named`, and is referred to. */
function jsonSchema(schema: z.ZodType, named: Record<string, Schema>): Schema {
  // Within another, since the outermost is never a reference.
  const whole = z.toJSONSchema(z.object({ it: schema }), { io: "input" });
  for (const [name, one] of Object.entries(whole.$defs ?? {})) {
    const { id: _, ...found } = plain(one) as Schema;
    named[name] = found;
  }
  return plain(whole.properties?.it) as Schema;
}

/**
 * As people write it: no bounds that only say "a safe integer", nothing that allows everything, and null as one of the
 * types.
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

/** A description of an API (OpenAPI 3.1), as far as our own files use it. */

export type HttpMethod = "get" | "post" | "put" | "delete";

/** As far as our own files use them. */
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

// Fields and faults that the actions of several rooms share.

export const pagesPerDay = z.int().min(0).max(1_000_000_000);

export const bytesPerDay = z.int().min(0).max(1e15);

/** Of an action that says all by its address. */
export const nothingBody = z.strictObject({}).meta({ id: "Nothing" });

/** Before something takes work away, a page has people type `meant` (confirmForm); a program's request is enough. */
export function typedConfirmation(meant: string) {
  return z.string().max(100).optional().describe(`${meant}; left out: the request is enough.`);
}

/** A name that can be no crawler's reaches no query. */
export function isName(text: string): boolean {
  return crawlerName.safeParse(text).success;
}
