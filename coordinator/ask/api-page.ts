/** The API's description as pages: all operations in groups, and each one with its fields and examples. */

import type { FastifyInstance, FastifyRequest } from "fastify";
import { LRUCache } from "lru-cache";
import { hostInUrl } from "#core/ip/url-host";
import type { Content, HttpMethod, OpenApi, Operation, Parameter, Schema } from "../web/api-operation.ts";
import { pageScript } from "../web/assets.ts";
import { column, dataTable, numberColumn, type TableColumn, wideColumn } from "../web/components.ts";
import { type ApiErrorKind, apiErrors } from "../web/guard.ts";
import { type Html, html, nothing, pathWith } from "../web/html.ts";
import type { Shown, Views } from "./views.ts";

export interface ApiOperation {
  readonly method: HttpMethod;
  readonly path: string;
  readonly operation: Operation;
}

export function operationsOf(api: OpenApi): ApiOperation[] {
  return Object.entries(api.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({
      method: method as HttpMethod,
      path,
      operation,
    })),
  );
}

function apiBody(api: OpenApi): Html {
  const groups = groupsOf(operationsOf(api));
  return html`<h1>API</h1>
<p class="lead">${api.info.summary}</p>
<p>${withCode(api.info.description)}</p>
<p class="actions"><a class="button quiet slim" href="/api/openapi.json">OpenAPI ${api.openapi} as JSON</a></p>
<nav class="small jumps" aria-label="Groups of operations">${[...groups.keys(), "errors"].map((name) => html`<a href="#${name}">${titleOf(name)}</a> `)}</nav>
${[...groups].map(([name, operations]) => group(name, operations))}
${errorSection()}`;
}

/** The errors common to all operations. Each operation lists its own. */
function errorSection(): Html {
  return html`<section><h2 id="errors">Errors</h2>
<p>Every error is <code>{"error": {"status": …, "message": …}}</code>; the message is a sentence for people, the status is for programs.</p>
${dataTable("Errors", errorColumns, Object.entries(apiErrors))}</section>`;
}

const errorColumns: readonly TableColumn<[status: string, kind: ApiErrorKind]>[] = [
  numberColumn("Status", ([status]) => status),
  column("Name", ([, { title }]) => title),
  wideColumn("What it means", ([, { means }]) => means),
  wideColumn("What to do", ([, { advice }]) => advice),
];

const titleOf = (name: string) => name.charAt(0).toUpperCase() + name.slice(1);

function groupsOf(operations: readonly ApiOperation[]): Map<string, ApiOperation[]> {
  const groups = new Map<string, ApiOperation[]>();
  for (const one of operations) {
    const name = one.operation.tags?.[0] ?? "other";
    groups.set(name, [...(groups.get(name) ?? []), one]);
  }
  return groups;
}

function group(name: string, operations: readonly ApiOperation[]): Html {
  return html`<section><h2 id="${name}">${titleOf(name)}</h2>${dataTable(titleOf(name), operationColumns, operations)}</section>`;
}

const operationColumns: readonly TableColumn<ApiOperation>[] = [
  {
    title: "Address",
    cell: ({ path, operation: { operationId } }) =>
      html`<a class="mono" href="${pathWith("/api", { operation: operationId })}">${path}</a>`,
  },
  column("Method", ({ method }) => methodBadge(method)),
  wideColumn("What it does", ({ operation }) => operation.summary),
  column("Access", ({ operation }) => whoMay(operation)),
];

const methodBadge = (method: string) =>
  html`<span class="method method-${method}">${method.toUpperCase()}</span>`;

function whoMay(operation: Operation): string {
  return needsToken(operation) ? "token" : "readers";
}

/** An empty alternative in `security` means that the token is optional. */
function needsToken({ security = [] }: Operation): boolean {
  return security.length > 0 && security.every((one) => Object.keys(one).length > 0);
}

function operationBody(api: OpenApi, { method, path, operation }: ApiOperation): Html {
  const used = usedSchemas(api, operation);
  return html`${pageScript("copy.js")}<p class="small"><a href="/api">API</a></p>
<h1>${operation.summary}</h1>
<p>${methodBadge(method)} <code class="break">${path}</code> <span class="small">Access: ${whoMay(operation)}</span></p>
${operation.description ? html`<p>${operation.description}</p>` : nothing}
${parameters(api, operation)}
${requestBody(operation)}
<section><h2>Try it</h2><pre class="copied" tabindex="0"><code>${curlLine({ method, path, operation }, api.servers[0]?.url ?? "")}</code></pre></section>
${responses(api, operation)}
${used.length > 0 ? html`<section><h2>Schemas</h2>${used.map(([name, schema]) => namedSchema(name, schema))}</section>` : nothing}`;
}

function parameters(api: OpenApi, { parameters: listed = [] }: Operation): Html {
  const shown = listed.map((one) => resolved<Parameter>(api, one)).filter((one) => one !== null);
  if (shown.length === 0) return nothing;
  return html`<section><h2>Parameters</h2>${dataTable("Parameters", parameterColumns, shown)}</section>`;
}

const parameterColumns: readonly TableColumn<Parameter>[] = [
  column(
    "Name",
    ({ name, required }) =>
      html`<code>${name}</code>${required ? html` <span class="small">required</span>` : nothing}`,
  ),
  column("In", (one) => one.in),
  column("Type", ({ schema = {} }) => typeWords(schema)),
  wideColumn("What it is", ({ description = "" }) => description),
  {
    title: "Example",
    kind: "break",
    cell: ({ example }) => (example === undefined ? "" : html`<code>${String(example)}</code>`),
  },
];

function requestBody({ requestBody: body }: Operation): Html {
  if (!body) return nothing;
  return html`<section><h2>Request body</h2>${contentParts(body.content)}</section>`;
}

function contentParts(content: Content): Html[] {
  return Object.entries(content).map(
    ([type, { schema, example }]) =>
      html`<p class="small">${type}${schema ? html`: ${typeWords(schema)}` : nothing}</p>${exampleBlock(example)}`,
  );
}

function responses(api: OpenApi, operation: Operation): Html {
  const listed = Object.entries(operation.responses).map(([status, one]) => {
    const { description = "", content = {} } = resolved<Response>(api, one) ?? {};
    return html`<h3>${status} <span class="small">${description}</span></h3>${contentParts(content)}`;
  });
  return html`<section><h2>Answers</h2>
<p class="small">And any of the <a href="/api#errors">errors</a> that every operation may answer.</p>${listed}</section>`;
}

interface Response {
  readonly description?: string;
  readonly content?: Content;
}

function exampleBlock(example: unknown): Html {
  if (example === undefined) return nothing;
  const text = typeof example === "string" ? example : JSON.stringify(example, null, 2);
  return html`<details${text.length < 1500 ? html` open` : nothing}><summary>Example</summary><pre tabindex="0"><code>${text}</code></pre></details>`;
}

function namedSchema(name: string, schema: Schema): Html {
  const fields = Object.entries(schema.properties ?? {});
  const columns: readonly TableColumn<[field: string, one: Schema]>[] = [
    column(
      "Field",
      ([field]) =>
        html`<code>${field}</code>${schema.required?.includes(field) ? nothing : html` <span class="small">optional</span>`}`,
    ),
    column("Type", ([, one]) => typeWords(one)),
    wideColumn("What it is", ([, { description = "" }]) => description),
  ];
  const described = schema.description ? html`<p>${schema.description}</p>` : nothing;
  return html`<h3 id="schema-${name}">${name}</h3>${described}${
    fields.length === 0 ? html`<p>${typeWords(schema)}</p>` : dataTable(name, columns, fields)
  }`;
}

/** Describes a schema briefly, with links to named schemas. */
function typeWords(schema: Schema): Html {
  if (schema.$ref) {
    const name = schemaName(schema.$ref);
    return html`<a href="#schema-${name}">${name}</a>`;
  }
  if (schema.oneOf) {
    return html`${schema.oneOf.map((one, index) => html`${index > 0 ? " or " : ""}${typeWords(one)}`)}`;
  }
  if (schema.enum) return html`${schema.enum.map((one) => String(one)).join(", ")}`;
  if (schema.items) return html`list of ${typeWords(schema.items)}`;
  if (typeof schema.additionalProperties === "object") {
    return html`by name: ${typeWords(schema.additionalProperties)}`;
  }
  const format = typeof schema.format === "string" ? ` (${schema.format})` : "";
  return html`${[schema.type ?? "anything"].flat().join(" or ")}${format}${boundsWords(schema)}`;
}

const bounds = [
  ["minimum", "from"],
  ["maximum", "to"],
  ["minLength", "at least", "characters"],
  ["maxLength", "at most", "characters"],
  ["maxItems", "at most"],
] as const;

function boundsWords(schema: Schema): string {
  const words = bounds
    .filter(([keyword]) => schema[keyword] !== undefined)
    .map(([keyword, before, after = ""]) => `${before} ${String(schema[keyword])} ${after}`.trim());
  return words.length === 0 ? "" : `, ${words.join(" ")}`;
}

const schemaName = (ref: string) => ref.replace("#/components/schemas/", "");

/** Returns every schema that the operation uses, directly or indirectly, in order of appearance. */
function usedSchemas(api: OpenApi, operation: Operation): [string, Schema][] {
  const names: string[] = [];
  const take = (value: unknown) => {
    for (const [, name] of JSON.stringify(value ?? null).matchAll(
      /"#\/components\/schemas\/([A-Za-z0-9]+)"/g,
    )) {
      if (name === undefined || names.includes(name)) continue;
      names.push(name);
      take(api.components.schemas[name]);
    }
  };
  take([operation.requestBody, operation.responses]);
  return names.flatMap((name) => {
    const schema = api.components.schemas[name];
    return schema ? [[name, schema]] : [];
  });
}

/** Returns the part itself, or what its reference points to. */
function resolved<Part extends object>(api: OpenApi, part: object): Part | null {
  if (!("$ref" in part)) return part as Part;
  const [, kind = "", name = ""] = /^#\/components\/(\w+)\/(\w+)$/.exec(String(part.$ref)) ?? [];
  return (api.components[kind]?.[name] as Part | undefined) ?? null;
}

/** `origin` is the one through which the reader reached this coordinator. */
function curlLine({ method, path, operation }: ApiOperation, origin: string): string {
  const listed = (operation.parameters ?? []).filter((one): one is Parameter => "name" in one);
  const exampleOf = (one: Parameter) => encodeURIComponent(String(one.example ?? `{${one.name}}`));
  const inPath = listed
    .filter((one) => one.in === "path")
    .reduce((text, one) => text.replace(`{${one.name}}`, exampleOf(one)), path);
  const query = listed
    .filter((one) => one.in === "query" && one.required)
    .map((one) => `${one.name}=${exampleOf(one)}`);
  const json = operation.requestBody?.content["application/json"];
  return [
    `curl${method === "get" ? "" : ` -X ${method.toUpperCase()}`}`,
    ...(needsToken(operation) ? ["-H 'Authorization: Bearer TOKEN'"] : []),
    ...(json
      ? ["-H 'Content-Type: application/json'", `-d '${inQuotes(JSON.stringify(json.example ?? {}))}'`]
      : []),
    `'${origin}${inPath}${query.length > 0 ? `?${query.join("&")}` : ""}'`,
  ].join(" \\\n  ");
}

/** Escapes a text for single quotes in a shell. */
const inQuotes = (text: string) => text.replaceAll("'", "'\\''");

// The API's description is a document for programs and pages for people. Both name the origin of the request.

/** The number is limited, because the Host header may be anything, and each origin's description takes a megabyte. */
const keptDescriptions = 4;

/** Matches a name or address with an optional port. Nothing in it can end a quotation in a shell. */
const hostForm = /^(?:[a-z0-9](?:[a-z0-9._-]{0,251}[a-z0-9])?|\[[0-9a-f:.]{2,45}\])(?::\d{1,5})?$/i;

interface Description {
  readonly api: OpenApi;
  readonly document: string;
}

/** `describe` is called on the first request. `publicUrl` is the configured one, for requests with an unusable Host. */
export function addApiRoutes(
  app: FastifyInstance,
  views: Views,
  describe: () => Promise<OpenApi>,
  publicUrl: string | null,
): void {
  const kept = new LRUCache<string, Description>({ max: keptDescriptions });
  const describedFor = async (request: FastifyRequest): Promise<Description> => {
    const origin = askedOrigin(request, publicUrl);
    const known = kept.get(origin) ?? describedAt(origin, await describe());
    kept.set(origin, known);
    return known;
  };
  app.get("/api/openapi.json", async (request, reply) =>
    reply.type("application/json; charset=utf-8").send((await describedFor(request)).document),
  );
  const listed = (api: OpenApi) =>
    operationsOf(api).map(({ method, path, operation }) => ({
      method: method.toUpperCase(),
      path,
      operationId: operation.operationId,
      summary: operation.summary,
      needsToken: needsToken(operation),
    }));
  views.add({
    path: "/api",
    api: "/api/operations",
    needs: null,
    view: async ({ query, request }): Promise<Shown | null> => {
      const name = query("operation");
      if (name === "") {
        const plain = await describe();
        return {
          status: 200,
          value: { operations: listed(plain), errors: errorsListed },
          title: "API",
          body: () => apiBody(plain),
        };
      }
      const { api } = await describedFor(request);
      const one = operationsOf(api).find(({ operation }) => operation.operationId === name);
      if (!one) return null;
      const title = `${one.operation.summary} · API`;
      return { status: 200, value: one, title, body: () => operationBody(api, one) };
    },
  });
}

const errorsListed = Object.entries(apiErrors).map(([status, kind]) => ({ status: Number(status), ...kind }));

function describedAt(origin: string, described: OpenApi): Description {
  const api: OpenApi = { ...described, servers: [{ url: origin }] };
  return { api, document: JSON.stringify(api, null, 2) };
}

/** Behind a proxy, this is the origin that the proxy states (`trustProxy`). */
function askedOrigin(request: FastifyRequest, publicUrl: string | null): string {
  const { host, protocol, socket } = request;
  if (hostForm.test(host)) return `${protocol === "https" ? "https" : "http"}://${host.toLowerCase()}`;
  if (publicUrl !== null) return new URL(publicUrl).origin;
  const { localAddress = "127.0.0.1", localPort = 80 } = socket;
  return `http://${hostInUrl(localAddress)}:${localPort}`;
}

/** Shows text between backticks as code. */
function withCode(text: string): Html {
  return html`${text.split("`").map((part, at) => (at % 2 === 0 ? part : html`<code>${part}</code>`))}`;
}
