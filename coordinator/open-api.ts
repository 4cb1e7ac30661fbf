/** The API's description (OpenAPI 3.1), made from the operations of all rooms. Groups that are not described in zod yet have a file in the folder web/openapi, and root.json has what all of them share. */
import { readdirSync, readFileSync } from "node:fs";
import { channelsApi } from "./channels/channels-api.ts";
import { recrawlApi } from "./recrawl/recrawl-api.ts";
import { type ApiOperations, describeOperations } from "./web/api-operation.ts";
import type { OpenApi } from "./web/openapi.ts";
import { graphApi } from "./web-graph/web-graph-api.ts";

// The API's description (OpenAPI 3.1), made from the operations of each group of routes. Groups that are not described
// in zod yet have a file in the folder openapi, and root.json what all of them share.

const folder = new URL("./web/openapi/", import.meta.url);

const rootFile = "root.json";

/** The groups whose routes carry their description. */
export const described = { channels: channelsApi, graph: graphApi, recrawl: recrawlApi };

type Part = Partial<Pick<OpenApi, "paths">> & { readonly components?: Partial<OpenApi["components"]> };

interface TaggedPart {
  readonly tag: string;
  readonly part: Part;
}

/** Throws when two files describe the same path or schema. */
export function readOpenApi(): OpenApi {
  const root = partOf(rootFile) as OpenApi;
  const names = readdirSync(folder).filter((name) => name.endsWith(".json") && name !== rootFile);
  const written = names.map((name) => tagged(partOf(name), name.replace(/\.json$/, "")));
  const made = Object.entries(described).map(([tag, operations]) => madeOf(operations, tag));
  // By the groups' names, wherever they are described.
  const parts = [...written, ...made].sort((a, b) => (a.tag < b.tag ? -1 : 1)).map(({ part }) => part);
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
function tagged(part: Part, tag: string): TaggedPart {
  const paths = Object.entries(part.paths ?? {}).map(([path, methods]) => [
    path,
    Object.fromEntries(Object.entries(methods).map(([name, one]) => [name, { ...one, tags: [tag] }])),
  ]);
  return { tag, part: { ...part, paths: Object.fromEntries(paths) } };
}

/** The form of errors is the root's. */
function madeOf(operations: ApiOperations, tag: string): TaggedPart {
  const { paths, schemas } = describeOperations(operations, tag);
  const { Error: _, ...own } = schemas;
  return { tag, part: { paths, components: { schemas: own } } };
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
