/** Another pace of probes: how long what waits would take. */
import type { PolicySettings } from "../schema.ts";
import type { PreviewPolicies } from "./preview.ts";
import type { ProbeRates } from "./types.ts";

const mostWaiting = 100_000;
/** Taken where no answer is stored yet. */
const usualAnswerMs = 100;
/** Two tries that agree end a probe; it begins and ends with the crawler's own round trip to us. */
const usualTries = 2;

export const previewPace: PreviewPolicies = async ({ before, after }, { samples }) => {
  const rates = await samples.probeRates(mostWaiting);
  const [old, changed] = [paceOf(before, rates), paceOf(after, rates)];
  const probes = rates.probesPerRound ?? 1;
  const minutes = (pace: Pace) =>
    pace.perSecond === 0 ? null : (rates.waiting * probes) / pace.perSecond / 60;
  return {
    title: "Probes: what waits",
    figures: [
      {
        name: "probesPerSecond",
        words: "Probes that may start, at most",
        unit: "probes/s",
        before: old.perSecond,
        after: changed.perSecond,
      },
      {
        name: "minutes",
        words: "Time to probe what waits",
        unit: "min",
        before: minutes(old),
        after: minutes(changed),
      },
    ],
    basis: `${rates.isCountedInFull ? "" : "At least "}${rates.waiting.toLocaleString("en-GB")} subnets that wait, ${probes.toFixed(1)} probes a round (the latest ${rates.rounds}), ${rates.online} crawlers connected, ${Math.round(rates.answerMs ?? usualAnswerMs)} ms to an answer. What bounds it is ${old.bound} now, and ${changed.bound} after.`,
    limits: [
      "The limits towards one target and one network are not counted: where what waits lies in few networks, it takes longer.",
      "Rounds ask one crawler after the other, and a fleet that knows little yet runs fewer of them.",
    ],
  };
};

interface Pace {
  readonly perSecond: number;
  /** Which of the limits it is. */
  readonly bound: string;
}

function paceOf({ probe, delegation }: PolicySettings, { online, answerMs }: ProbeRates): Pace {
  const { pace } = probe;
  const tries = Math.min(probe.tries, usualTries);
  const seconds = Math.min(probe.deadlineMs, tries * (answerMs ?? usualAnswerMs)) / 1000;
  const limits: readonly (readonly [string, number])[] = [
    ["probe.pace.perSecond", pace.perSecond],
    ["probe.pace.perCrawlerPerSecond", pace.perCrawlerPerSecond * online],
    ["probe.pace.atOnce", pace.atOnce / seconds],
    ["probe.pace.perCrawlerAtOnce", (pace.perCrawlerAtOnce * online) / seconds],
    ["delegation.concurrentRounds", delegation.concurrentRounds / seconds],
  ];
  const [bound, perSecond] = limits.reduce((least, limit) => (limit[1] < least[1] ? limit : least));
  return { bound, perSecond };
}
