/** The API's description: as a document for programs, and as pages to read. Both name the origin by which they are asked. */
import type { FastifyInstance, FastifyRequest } from "fastify";
import { LRUCache } from "lru-cache";
import { apiBody, operationBody, operationsOf } from "./api-page.ts";
import { readOpenApi } from "./net-openapi.ts";
import type { OpenApi } from "./openapi.ts";
import type { Shown, Views } from "./views.ts";

/** What the description calls this coordinator in its examples. */
const exampleHost = "search.example";
/** Whoever asks may name any host; each one's description takes a megabyte. */
const keptDescriptions = 4;
/** A name or an address, with or without a port: nothing that would end a quotation in a shell. */
const hostForm = /^(?:[a-z0-9](?:[a-z0-9._-]{0,251}[a-z0-9])?|\[[0-9a-f:.]{2,45}\])(?::\d{1,5})?$/i;

interface Description {
  readonly api: OpenApi;
  readonly document: string;
}

/** `publicUrl`: of the settings, for who asks by no name that can be one. Throws when the description contradicts itself. */
export function addApiRoutes(app: FastifyInstance, views: Views, publicUrl: string | null): void {
  const plain = readOpenApi();
  const text = JSON.stringify(plain, null, 2);
  const kept = new LRUCache<string, Description>({ max: keptDescriptions });
  const describedFor = (request: FastifyRequest): Description => {
    const origin = askedOrigin(request, publicUrl);
    const known = kept.get(origin) ?? describedAt(origin, text);
    kept.set(origin, known);
    return known;
  };
  app.get("/api/openapi.json", async (request, reply) =>
    reply.type("application/json; charset=utf-8").send(describedFor(request).document),
  );
  const operations = operationsOf(plain);
  const list = operations.map(({ method, path, operation }) => ({
    method: method.toUpperCase(),
    path,
    operationId: operation.operationId,
    summary: operation.summary,
    needsToken: (operation.security ?? []).length > 0,
  }));
  views.add({
    path: "/api",
    api: "/api/operations",
    section: null,
    needs: null,
    view: async ({ query, request }): Promise<Shown | null> => {
      const name = query("operation");
      if (name === "") {
        return { status: 200, value: { operations: list }, title: "API", body: () => apiBody(plain) };
      }
      const { api } = describedFor(request);
      const one = operationsOf(api).find(({ operation }) => operation.operationId === name);
      if (!one) return null;
      const title = `${one.operation.summary} · API`;
      return { status: 200, value: one, title, body: () => operationBody(api, one) };
    },
  });
}

function describedAt(origin: string, text: string): Description {
  const named = text
    .replaceAll(`https://${exampleHost}`, origin)
    .replaceAll(`wss://${exampleHost}`, origin.replace(/^http/, "ws"));
  const api: OpenApi = { ...(JSON.parse(named) as OpenApi), servers: [{ url: origin }] };
  return { api, document: JSON.stringify(api, null, 2) };
}

/** Behind a proxy, what that says (`trustProxy`). */
function askedOrigin(request: FastifyRequest, publicUrl: string | null): string {
  const { host, protocol, socket } = request;
  if (hostForm.test(host)) return `${protocol === "https" ? "https" : "http"}://${host.toLowerCase()}`;
  if (publicUrl !== null) return new URL(publicUrl).origin;
  const { localAddress = "127.0.0.1", localPort = 80 } = socket;
  return `http://${localAddress.includes(":") ? `[${localAddress}]` : localAddress}:${localPort}`;
}
