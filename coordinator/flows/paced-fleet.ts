/** The fleet as everybody who probes sees it: each probe waits until the budget has room for it. */
import type { ProbeOutcome } from "#protocol/messages";
import type { Fleet } from "./crawler-ports.ts";
import type { ProbeBudget } from "./probe-budget.ts";

export function pacedFleet(fleet: Fleet, budget: ProbeBudget): Fleet {
  return {
    online: () => fleet.online(),
    probe: async (crawlerId, target) =>
      await budget.run({ crawlerId, address: target.address }, async (): Promise<ProbeOutcome> => {
        if (!budget.isClosed) return await fleet.probe(crawlerId, target);
        return { type: "failed", method: target.method, reason: "the coordinator is stopping" };
      }),
  };
}
