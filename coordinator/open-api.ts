/** The API's description (OpenAPI 3.1), made from the operations of all rooms. */
import { softwareVersion } from "#protocol/software-version";
import { loadOperations } from "./room-operations.ts";
import { type ApiOperations, describeOperations, type OpenApi } from "./web/api-operation.ts";

const rooms = await loadOperations();

export const apiOperations: ApiOperations = Object.assign({}, ...rooms.map(({ operations }) => operations));

const info = {
  title: "Nearcrawl",
  version: softwareVersion,
  summary: "Who crawls what, and why; the state of the crawl; search over its pages.",
  description:
    "What is read needs a token with the scope read, unless reading is for everybody, as it is where only the " +
    "coordinator's own machine reaches it. What changes something is a POST of application/json with a token of " +
    "the right scope (`Authorization: Bearer`), from no other origin; a browser's cookie is not enough. Each " +
    "answer is also at the address of its page, with `Accept: application/json`. Dates are ISO 8601 in UTC, " +
    "times milliseconds, sizes bytes. Errors are `{error: {status, message}}`, the message in plain words.",
  license: { name: "Apache-2.0", identifier: "Apache-2.0" },
};

let described: OpenApi | null = null;

/** Call it only when needed, because it takes about 90 ms. */
export function describeApi(): OpenApi {
  described ??= makeDescription();
  return described;
}

function makeDescription(): OpenApi {
  const parts = rooms.map(({ operations, tag }) => describeOperations(operations, tag));
  return {
    openapi: "3.1.0",
    info,
    servers: [{ url: "/" }],
    paths: allOf(parts.map(({ paths }) => paths)),
    components: {
      securitySchemes: {
        operatorToken: {
          type: "http",
          scheme: "bearer",
          description: "Made by nearcrawl operator-token create.",
        },
      },
      schemas: allOf(parts.map(({ schemas }) => schemas)),
    },
  };
}

/** Throws when two rooms use one name for different things, since one would be described wrongly. */
function allOf<T>(named: readonly Readonly<Record<string, T>>[]): Record<string, T> {
  const all: Record<string, T> = {};
  for (const [name, one] of named.flatMap(Object.entries<T>)) {
    const known = all[name];
    if (known !== undefined && JSON.stringify(known) !== JSON.stringify(one)) {
      throw new Error(`the API's description has two of ${name}`);
    }
    all[name] = one;
  }
  return all;
}
