/** /graph: the web graph as it was last ranked; a page, JSON, and its highest pages as CSV. */

import type { WebPart } from "../http-server.ts";
import { graphBody, graphCsv, notRankedBody } from "./graph-page.ts";
import type { GraphSummary } from "./summary.ts";

export interface KeptGraph {
  readonly madeAt: Date;
  readonly summary: GraphSummary;
}

export interface GraphRoutePorts {
  /** Null: nobody has ranked yet. */
  readonly latest: () => Promise<KeptGraph | null>;
  /** Of the ranks that the frontier's order goes by; null: there are none. */
  readonly ranksAt: () => Promise<Date | null>;
}

export function graphRoutes({ latest, ranksAt: ranksMade }: GraphRoutePorts): WebPart {
  return ({ views }) => {
    views.add({
      path: "/graph",
      api: "/api/graph",
      section: "/explore",
      needs: "read",
      view: async () => {
        const [kept, made] = await Promise.all([latest(), ranksMade()]);
        const title = "Web graph";
        const ranksAt = made?.toISOString() ?? null;
        if (kept === null) {
          return { status: 200, value: { graph: null, ranksAt }, title, body: () => notRankedBody(made) };
        }
        const { madeAt, summary } = kept;
        return {
          status: 200,
          value: { graph: { madeAt: madeAt.toISOString(), ...summary }, ranksAt },
          title,
          body: () => graphBody(summary, madeAt, made),
          csv: () => graphCsv(summary),
        };
      },
    });
  };
}
