/** Another rule of recalibration: the latest fetches weighed again, and decisions that would count as old. */
import { defaultRecalibrationRule } from "../../delegation/recalibration/rule.ts";
import type { PolicySettings } from "../schema.ts";
import type { PreviewPolicies, PreviewPorts } from "./preview.ts";
import { hostDays, roundsBy } from "./replay-fetches.ts";

const mostHosts = 200;
const fetchesPerHost = 50;
const dayMs = 86_400_000;
/** The coordinator probes so many old decisions again in a day at most (coordinator/schedule.ts). */
const mostRefreshedADay = 43_200;
const mostCounted = 1_000_000;

export const previewRecalibration: PreviewPolicies = async ({ before, after, names }, ports) => {
  const sample = await ports.samples.fetches(mostHosts, fetchesPerHost);
  const days = hostDays(sample.fetches);
  const aDay = ({ recalibration }: PolicySettings) => {
    const { slowerThanFactor: factor, timesInARow: inARow } = recalibration;
    const rounds = roundsBy({ ...defaultRecalibrationRule, factor, inARow }, sample.fetches);
    return days === 0 ? null : (rounds / days) * sample.allHosts;
  };
  return {
    title: "Recalibration: the latest fetches weighed again",
    figures: [
      {
        name: "slowRoundsPerDay",
        words: "Subnets probed again because a host in them turned slow",
        unit: "rounds/day",
        before: aDay(before),
        after: aDay(after),
      },
      ...(names.has("recalibration.refreshDays")
        ? [
            {
              name: "oldDecisions",
              words: "Decisions that count as old and are probed again",
              unit: "subnets",
              before: await old(before, ports),
              after: await old(after, ports),
            },
          ]
        : []),
    ],
    basis: `The latest ${fetchesPerHost} fetches each of ${sample.hosts} hosts that were fetched of late (${sample.fetches.length} fetches, ${days.toFixed(1)} days of one host), scaled to all ${sample.allHosts} hosts.`,
    limits: [
      "A subnet is probed again once an hour at most, in the replay as in the coordinator; that hosts of one subnet share this is seen only within the sample.",
      ...(days < 1
        ? ["The hosts were watched for less than a day together: take the numbers for their order of size."]
        : []),
      ...(names.has("recalibration.everySeconds")
        ? ["How often it is looked changes how long a slow subnet waits, not how many there are."]
        : []),
      ...(names.has("recalibration.refreshDays")
        ? [
            `Old decisions are probed again at ${mostRefreshedADay.toLocaleString("en-GB")} a day at most, the oldest first.`,
          ]
        : []),
    ],
  };
};

async function old({ recalibration }: PolicySettings, { samples, now }: PreviewPorts): Promise<number> {
  const before = new Date(now().getTime() - recalibration.refreshDays * dayMs);
  return await samples.decidedBefore(before, mostCounted);
}
