/** /fleet/recrawl: how often pages are fetched again, and why: the plan in force and those before it. */

import type { WebPart } from "../http-server.ts";
import type { CsvTable } from "../web/html.ts";
import type { RecrawlPlanStore } from "./make-plan.ts";
import { type RecrawlAnswer, recrawlAnswer } from "./recrawl-answer.ts";
import { recrawlBody } from "./recrawl-page.ts";

const plansShown = 50;

export function recrawlRoutes(store: Pick<RecrawlPlanStore, "history">): WebPart {
  return ({ views }) => {
    views.add({
      ...{ path: "/fleet/recrawl", api: "/api/fleet/recrawl", section: "/fleet", needs: "fleet-read" },
      view: async ({ now }) => {
        const value = await recrawlAnswer(store, plansShown, now);
        return {
          status: 200,
          value,
          title: "Recrawl",
          body: (visit) => recrawlBody(value, visit),
          csv: () => plansCsv(value),
        };
      },
    });
  };
}

const columns = [
  "madeAt",
  "strategy",
  "reason",
  "pages",
  "allowedPerDay",
  "capacityPerDay",
  "plannedPerDay",
  "achievedPerDay",
  "correction",
  "freshness",
] as const;

function plansCsv({ plans }: RecrawlAnswer): CsvTable {
  return { columns, rows: plans.map((plan) => columns.map((column) => plan[column])) };
}
