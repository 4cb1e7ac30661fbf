/** The pages' part about policies, with its stores. */
import { systemClock } from "./flows/alarm-clock.ts";
import type { PreviewPorts } from "./flows/preview-policies.ts";
import type { Log } from "./log.ts";
import type { WebPart } from "./net/http-server.ts";
import { policyRoutes } from "./net/policy-routes.ts";
import { createCrawlerStore } from "./postgres/crawler-store.ts";
import { createDelegationStore } from "./postgres/delegation-store.ts";
import { createPolicySamples } from "./postgres/policy-samples.ts";
import { createPolicyStore } from "./postgres/policy-store.ts";
import { createRecrawlPlanStore } from "./postgres/recrawl/plan-store.ts";
import type { WebPartOptions } from "./web-parts.ts";

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
