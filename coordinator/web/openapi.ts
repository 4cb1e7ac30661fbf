import { readdirSync, readFileSync } from "node:fs";

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

// The API's description (OpenAPI 3.1), put together from the files of the folder openapi: root.json, and one for
// each group of routes with its paths and the schemas that it alone uses.

const folder = new URL("./openapi/", import.meta.url);
const rootFile = "root.json";

type Part = Partial<Pick<OpenApi, "paths">> & { readonly components?: Partial<OpenApi["components"]> };

/** Throws when two files describe the same path or schema. */
export function readOpenApi(): OpenApi {
  const root = partOf(rootFile) as OpenApi;
  const names = readdirSync(folder).filter((name) => name.endsWith(".json") && name !== rootFile);
  const parts = names.sort().map((name) => tagged(partOf(name), name.replace(/\.json$/, "")));
  return {
    ...root,
    paths: merged([root.paths, ...parts.map(({ paths }) => paths)]),
    components: {
      ...root.components,
      schemas: merged([root.components.schemas, ...parts.map(({ components }) => components?.schemas)]),
    },
  };
}

function partOf(name: string): Part {
  return JSON.parse(readFileSync(new URL(name, folder), "utf8"));
}

/** Every operation of a file belongs to the group that the file is named after. */
function tagged(part: Part, tag: string): Part {
  const paths = Object.entries(part.paths ?? {}).map(([path, methods]) => [
    path,
    Object.fromEntries(Object.entries(methods).map(([name, one]) => [name, { ...one, tags: [tag] }])),
  ]);
  return { ...part, paths: Object.fromEntries(paths) };
}

function merged<Value>(
  parts: readonly (Readonly<Record<string, Value>> | undefined)[],
): Record<string, Value> {
  const all: Record<string, Value> = {};
  for (const [name, value] of parts.flatMap((part) => Object.entries(part ?? {}))) {
    if (name in all) throw new TypeError(`the API's description has ${name} twice`);
    all[name] = value;
  }
  return all;
}
