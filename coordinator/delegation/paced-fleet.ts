/**
 * The fleet as everybody who probes sees it: each probe waits until the budget has room for it. A target is asked at its
 * URL's port; crawlers probe few ports but the web's, so where that fails at another one, the usual port of the scheme is
 * asked: the way is the same, and a refusal is an answer.
 */
import type { CrawlerId } from "#core/ids";
import type { ProbeOutcome } from "#protocol/messages";
import type { Fleet } from "../crawlers/crawler.ts";
import type { ProbeBudget } from "./probe-pacing.ts";

type Target = Parameters<Fleet["probe"]>[1];

const webPorts: readonly number[] = [80, 443];

export function pacedFleet(fleet: Fleet, budget: ProbeBudget): Fleet {
  const ask = async (crawlerId: CrawlerId, target: Target) =>
    await budget.run({ crawlerId, address: target.address }, async (): Promise<ProbeOutcome> => {
      if (!budget.isClosed) return await fleet.probe(crawlerId, target);
      return { type: "failed", method: target.method, reason: "the coordinator is stopping" };
    });
  return {
    online: () => fleet.online(),
    probe: async (crawlerId, target) => {
      const outcome = await ask(crawlerId, target);
      if (outcome.type !== "failed" || webPorts.includes(target.port)) return outcome;
      return await ask(crawlerId, { ...target, port: target.secure ? 443 : 80 });
    },
  };
}
