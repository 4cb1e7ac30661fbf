import type { Pool } from "pg";
import type { NameResolver } from "#core/name-resolver";
import { addOperations, type WebPart } from "../../ask/add-operations.ts";
import { following } from "../../core/policy.ts";
import type { FrontierSettings, ScopeSettings } from "../../crawl/frontier/frontier-settings.ts";
import { frontierOrder } from "../../crawl/frontier/order/strategies.ts";
import type { SearchEngine } from "../search/engine/search-engine.ts";
import { whoReads } from "./reads.ts";
import { whoOperations } from "./who-ask.ts";

export const whoPart = ({
  pool,
  resolver,
  config,
  searchEngine,
}: {
  readonly pool: Pool;
  readonly resolver: NameResolver;
  readonly config: {
    readonly scope: ScopeSettings;
    readonly frontier: FrontierSettings;
    readonly domainSets: readonly string[];
  };
  readonly searchEngine?: SearchEngine;
}): WebPart =>
  addOperations(whoOperations, {
    ...{
      reads: whoReads(pool, () => performance.now(), searchEngine?.texts),
      resolver,
      domainSets: config.domainSets,
    },
    scope: following(() => config.scope),
    order: following(() => frontierOrder(config.frontier)),
  });
