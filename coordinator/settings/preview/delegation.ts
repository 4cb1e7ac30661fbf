/** Another policy, λ or threshold: the latest rounds played again under the present and under the new value. */

import type { AlarmClock } from "#core/clock";
import { howMany } from "#core/format";
import type { CrawlerId } from "#core/ids";
import { PeerRttTable } from "../../delegation/fleet.ts";
import type { PolicyVariant } from "../../delegation/simulation/run.ts";
import type { PolicySettings } from "../schema.ts";
import type { PreviewPolicies } from "./preview.ts";
import { differenceOf, playRounds, type Replay } from "./replay-rounds.ts";
import type { PolicyEffect } from "./types.ts";

const mostRounds = 2000;
/** So long they are played, in turns with whatever else the coordinator has to do. */
const playMs = 1000;
const turnMs = 20;
const mostWaiting = 100_000;
const title = "Delegation: the latest rounds played again";

export const previewDelegation: PreviewPolicies = async ({ before, after }, ports) => {
  const { samples, crawlers, clock } = ports;
  const [sample, rtts] = [await samples.rounds(mostRounds), await crawlers.rtts()];
  if (sample.rounds.length === 0 || sample.crawlers.length === 0) return nothingYet(title);
  const peers = new PeerRttTable(rtts);
  const crawlerRttMs = (a: CrawlerId, b: CrawlerId) => peers.rttMs(a, b);
  const playing = playRounds({ ...sample, crawlerRttMs }, [variantOf(before), variantOf(after)]);
  const [old, changed] = await played(playing, clock);
  const rounds = sample.rounds.slice(0, old!.rounds.length);
  const difference = differenceOf(old!, changed!);
  const paid = rounds.reduce((sum, { paidProbes }) => sum + paidProbes, 0);
  const agreeing = rounds.filter(({ crawlerId }, at) => old!.rounds[at]!.crawlerId === crawlerId).length;
  const perRound = (probes: number) => probes / rounds.length;
  return {
    title,
    figures: [
      {
        name: "probesPerRound",
        words: "Probes a round",
        unit: "probes",
        before: perRound(difference.probesBefore),
        after: perRound(difference.probesAfter),
      },
      {
        name: "changedDelegations",
        words: "Of these subnets, those that would go to another crawler",
        unit: "subnets",
        before: 0,
        after: difference.changed,
      },
      {
        name: "extraRttMs",
        words: "Mean RTT to these subnets, against the present",
        unit: "ms",
        before: 0,
        after: difference.extraRttMs,
      },
    ],
    basis: `${howMany(rounds.length, "decided round")} ${rounds.length < sample.rounds.length ? `of the latest ${sample.rounds.length.toLocaleString("en-GB")}, as many as could be played in ${playMs / 1000} s,` : "(the latest)"} and ${howMany(sample.crawlers.length, "crawler")}: each round played under both values in the same order. ${percent(1 - difference.predictedShare)} of the probes got the answer that was measured then; ${percent(difference.predictedShare)} went to crawlers that were not asked then, and got what the crawlers' distances to each other predict.`,
    limits: [
      `Both begin with what the crawlers' own subnets teach, and learn from these rounds alone: as they were run, they took ${perRound(paid).toFixed(1)} probes each.`,
      `Played under the present value, ${percent(agreeing / rounds.length)} of them end with the crawler that they ended with then.`,
      "Subnets that are delegated stay where they are until they are probed again.",
    ],
  };
};

/** As far as it comes within the time: one round at least. */
async function played(playing: Generator<Replay[], void>, clock: AlarmClock): Promise<Replay[]> {
  const startedMs = clock.nowMs();
  let turnStartedMs = startedMs;
  let replays: Replay[] = [];
  for (const soFar of playing) {
    replays = soFar;
    const nowMs = clock.nowMs();
    if (nowMs - startedMs > playMs) break;
    if (nowMs - turnStartedMs < turnMs) continue;
    await new Promise<void>((resolve) => clock.wake(0, resolve));
    turnStartedMs = clock.nowMs();
  }
  return replays;
}

function variantOf({ delegation }: PolicySettings): PolicyVariant {
  const { policy, lambdaMs, thresholdMs } = delegation;
  return { policy, parameters: { lambdaMs, thresholdMs } };
}

export const previewFirstFetches: PreviewPolicies = async ({ before, after }, { samples }) => {
  const of = async ({ delegation: { getFirstFromUrls } }: PolicySettings) =>
    getFirstFromUrls === 0 ? 0 : await samples.waitingWithUrls(getFirstFromUrls, mostWaiting);
  return {
    title: "Subnets that are fetched first and probed meanwhile",
    figures: [
      {
        name: "firstFetches",
        words: "Of the subnets that wait now",
        unit: "subnets",
        before: await of(before),
        after: await of(after),
      },
    ],
    basis: `The subnets without a crawler that have URLs due, ${mostWaiting.toLocaleString("en-GB")} at most.`,
    limits: [
      "Only probes by connect can be held against a fetch: with another method none is fetched first.",
    ],
  };
};

export const nothingYet = (title: string): PolicyEffect => ({
  title,
  figures: [],
  basis: "Not told: nothing has been stored yet that it could be computed from.",
  limits: ["Look again when the crawl has run for a while."],
});

export const percent = (share: number) => `${Math.round(100 * share)} %`;
