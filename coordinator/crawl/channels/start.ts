/** Adds the pages about channels, and their periodic work. */
import type { Pool } from "pg";
import type { Timekeeper } from "#core/scheduler";
import { addOperations, type WebPart } from "../../ask/add-operations.ts";
import type { CrawlScope } from "../frontier/frontier.ts";
import { createChannelStore } from "./channel-store.ts";
import { type ChannelPorts, channelOperations } from "./channels-ask.ts";
import { coverageList } from "./coverage-reads.ts";

export function channelPart({
  pool,
  config,
}: {
  readonly pool: Pool;
  readonly config: { readonly scope: Pick<CrawlScope, "maxDepth"> };
}): WebPart {
  return addOperations<ChannelPorts>(channelOperations, {
    store: createChannelStore(pool),
    coverage: async (query) => await coverageList(pool, { ...query, maxDepth: config.scope.maxDepth }),
  });
}

const settleMs = 15_000;

/** Applies new channels to URLs that are already in the frontier. */
export function scheduleChannels(pool: Pool, timekeeper: Pick<Timekeeper, "every">, now: () => Date): void {
  const store = createChannelStore(pool);
  timekeeper.every("settle-channels", settleMs, async () => await store.settle(now()));
}
