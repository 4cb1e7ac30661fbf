/** A room's operations on the web server: each as page or form, and under /api/. */

import { routePath } from "../web/api-operation.ts";
import { addDeed } from "./deeds.ts";
import { formSender } from "./form-sender.ts";
import type { AnyOperation } from "./operation.ts";
import { looked } from "./questions.ts";
import type { WebPart } from "./web-part.ts";

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
