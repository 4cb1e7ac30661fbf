/** The API's description: as a document for programs, and as pages to read. */
import type { FastifyInstance } from "fastify";
import { apiBody, operationBody, operationsOf } from "../web/api-page.ts";
import { readOpenApi } from "./openapi.ts";
import type { Shown, Views } from "./views.ts";

/** Throws when the description contradicts itself. */
export function addApiRoutes(app: FastifyInstance, views: Views): void {
  const api = readOpenApi();
  const document = JSON.stringify(api, null, 2);
  app.get("/api/openapi.json", async (_request, reply) =>
    reply.type("application/json; charset=utf-8").send(document),
  );
  const operations = operationsOf(api);
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
    view: async ({ query }): Promise<Shown | null> => {
      const name = query("operation");
      if (name === "") {
        return { status: 200, value: { operations: list }, title: "API", body: () => apiBody(api) };
      }
      const one = operations.find(({ operation }) => operation.operationId === name);
      if (!one) return null;
      const title = `${one.operation.summary} · API`;
      return { status: 200, value: one, title, body: () => operationBody(api, one) };
    },
  });
}
