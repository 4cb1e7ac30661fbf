/**
 * A client generated from the OpenAPI document alone, with a function per operation. It uses none of our code, so it can do
 * exactly what anybody's generated client can. Each answer is checked against the schema for its status.
 */
import { faultsOf, type JsonSchema } from "./schema-check.ts";

interface ClientCall {
  readonly path?: Readonly<Record<string, string | number>>;
  readonly query?: Readonly<Record<string, string | number>>;
  readonly body?: unknown;
}

export interface ClientAnswer {
  readonly status: number;
  readonly value: unknown;
  /** How it deviates from the document. */
  readonly faults: readonly string[];
}

export type ApiClient = Readonly<Record<string, (call?: ClientCall) => Promise<ClientAnswer>>>;

interface DocumentedParameter {
  readonly name: string;
  readonly in: string;
  readonly required?: boolean;
}

interface DocumentedOperation {
  readonly operationId: string;
  readonly parameters?: readonly DocumentedParameter[];
  readonly requestBody?: { readonly content: Readonly<Record<string, unknown>> };
  readonly responses: Readonly<
    Record<string, { readonly content?: Readonly<Record<string, { readonly schema?: JsonSchema }>> }>
  >;
}

export interface ApiDocument {
  readonly servers: readonly { readonly url: string }[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, DocumentedOperation>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, JsonSchema>> };
}

export function apiClient(document: ApiDocument, token: string | null): ApiClient {
  const functions = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => [
      operation.operationId,
      async (call: ClientCall = {}) => await ask(document, { path, method, operation }, { ...call, token }),
    ]),
  );
  return Object.fromEntries(functions);
}

async function ask(
  { servers, components }: ApiDocument,
  one: { readonly path: string; readonly method: string; readonly operation: DocumentedOperation },
  call: ClientCall & { readonly token: string | null },
): Promise<ClientAnswer> {
  const { operation, method } = one;
  const named = operation.parameters ?? [];
  for (const { name, in: place, required } of named)
    if (required && call[place as "path" | "query"]?.[name] === undefined)
      throw new Error(`${operation.operationId} needs ${name} in its ${place}`);
  const path = one.path.replace(/\{(\w+)\}/g, (_, name) => encodeURIComponent(String(call.path?.[name])));
  const url = new URL(path, servers[0]!.url);
  for (const [name, value] of Object.entries(call.query ?? {})) url.searchParams.set(name, String(value));
  const [type] = Object.keys(operation.requestBody?.content ?? {});
  const response = await fetch(url, {
    method: method.toUpperCase(),
    headers: {
      accept: "application/json",
      ...(call.token === null ? {} : { authorization: `Bearer ${call.token}` }),
      ...(type === undefined ? {} : { "content-type": type }),
    },
    ...(type === undefined ? {} : { body: JSON.stringify(call.body ?? {}) }),
  });
  const value: unknown = await response.json();
  const schema = operation.responses[response.status]?.content?.["application/json"]?.schema;
  const faults =
    schema === undefined
      ? [`${operation.operationId}: ${response.status} is not described`]
      : faultsOf(value, schema, components.schemas);
  return { status: response.status, value, faults };
}
