/** /graph: the web graph as it was last ranked; a page, JSON, and its highest pages as CSV. */
import type { GraphSummary } from "#core/graph/graph-summary";
import { graphBody, graphCsv, notRankedBody } from "../web/graph-page.ts";
import type { WebPart } from "./http-server.ts";

export interface KeptGraph {
  readonly madeAt: Date;
  readonly summary: GraphSummary;
}

export interface GraphRoutePorts {
  /** Null: nobody has ranked yet. */
  readonly latest: () => Promise<KeptGraph | null>;
}

export function graphRoutes({ latest }: GraphRoutePorts): WebPart {
  return ({ views }) => {
    views.add({
      path: "/graph",
      api: "/api/graph",
      section: "/explore",
      needs: "read",
      view: async () => {
        const kept = await latest();
        const title = "Web graph";
        if (kept === null) return { status: 200, value: { graph: null }, title, body: notRankedBody };
        const { madeAt, summary } = kept;
        return {
          status: 200,
          value: { graph: { madeAt: madeAt.toISOString(), ...summary } },
          title,
          body: () => graphBody(summary, madeAt),
          csv: () => graphCsv(summary),
        };
      },
    });
  };
}
