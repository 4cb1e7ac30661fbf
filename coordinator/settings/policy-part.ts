/** The pages' part about policies, with its stores. */
import { systemClock } from "#core/clock";
import type { Log } from "#core/log";
import { createCrawlerStore } from "../crawlers/crawler-store.ts";
import { createDelegationStore } from "../delegation/store.ts";
import type { WebPart } from "../http-server.ts";
import { createRecrawlPlanStore } from "../recrawl/plan-store.ts";
import type { WebPartOptions } from "../web-parts.ts";
import type { PreviewPorts } from "./preview/preview.ts";
import { createPolicySamples } from "./preview/sample-reads.ts";
import { policyRoutes } from "./routes.ts";
import { createPolicyStore } from "./settings-store.ts";

type Pool = WebPartOptions["pool"];

export function policyPart({ pool, log }: Pick<WebPartOptions, "pool" | "log">): WebPart {
  return policyRoutes({ ...previewPorts(pool, log), store: createPolicyStore(pool) });
}

/** What a preview reads with, here and in the command. */
export function previewPorts(pool: Pool, log: Log, now: () => Date = () => new Date()): PreviewPorts {
  return {
    samples: createPolicySamples(pool, now),
    crawlers: createCrawlerStore(pool),
    delegations: createDelegationStore(pool),
    recrawlPlan: async () => await createRecrawlPlanStore(pool).latest(),
    clock: systemClock,
    log,
    now,
  };
}
