/**
 * The API's description (OpenAPI 3.1), put together from the files of the folder openapi: root.json, and one for
 * each group of routes with its paths and the schemas that it alone uses.
 */
import { readdirSync, readFileSync } from "node:fs";

const folder = new URL("./openapi/", import.meta.url);
const rootFile = "root.json";

export interface OpenApi {
  readonly openapi: string;
  readonly info: { readonly title: string; readonly version: string; readonly [name: string]: unknown };
  readonly paths: Readonly<Record<string, unknown>>;
  readonly components: {
    readonly schemas: Readonly<Record<string, unknown>>;
    readonly [kind: string]: Readonly<Record<string, unknown>>;
  };
  readonly [name: string]: unknown;
}

type Part = Partial<Pick<OpenApi, "paths">> & { readonly components?: Partial<OpenApi["components"]> };

/** Throws when two files describe the same path or schema. */
export function readOpenApi(): OpenApi {
  const root = partOf(rootFile) as OpenApi;
  const names = readdirSync(folder).filter((name) => name.endsWith(".json") && name !== rootFile);
  const parts = names.sort().map(partOf);
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

function merged(parts: readonly (Readonly<Record<string, unknown>> | undefined)[]): Record<string, unknown> {
  const all: Record<string, unknown> = {};
  for (const [name, value] of parts.flatMap((part) => Object.entries(part ?? {}))) {
    if (name in all) throw new TypeError(`the API's description has ${name} twice`);
    all[name] = value;
  }
  return all;
}
