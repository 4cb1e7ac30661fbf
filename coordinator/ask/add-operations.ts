/** A room's operations on the web server: each as page or form, and under /api/. */

import type { FastifyInstance } from "fastify";
import type { Access } from "../web/access.ts";
import { routePath } from "../web/api-operation.ts";
import { addDeed, type DeedSettings } from "./deeds.ts";
import type { AnyOperation } from "./operation.ts";
import { formSender, looked } from "./questions.ts";
import type { Views } from "./views.ts";

export function addOperations<Ports>(
  operations: Readonly<Record<string, AnyOperation>>,
  ports: Ports,
): WebPart {
  return ({ app, views, deeds }) => {
    app.pages?.push(...Object.values(operations));
    const sender = formSender(Object.values(operations), ports);
    for (const one of Object.values(operations)) {
      const { page, needs, crawlerIn, titleWhileSlow } = one;
      if (one.method === "get")
        views.add({
          ...{ path: page ?? routePath(one), api: routePath(one), needs },
          ...(crawlerIn === undefined ? {} : { crawlerIn }),
          ...(titleWhileSlow === undefined ? {} : { titleWhileSlow }),
          view: async (asked) => await looked(one, asked, ports),
        });
      else addDeed(app, { ...deeds, ports, sender }, one);
    }
  };
}

/** Adds a room's operations and plain routes to the web server. */
export type WebPart = (to: {
  readonly app: FastifyInstance;
  readonly views: Views;
  readonly deeds: DeedSettings;
  /** The caller and its rights, for routes that are not views. */
  readonly access: Access;
}) => void;
