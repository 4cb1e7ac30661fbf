/** Settings of rounds, probes and recalibration. */

import { z } from "zod";
import type { AllowedSpecialPurpose } from "#core/ip/special-purpose";
import { probeMethod } from "#protocol/messages";
import { type DeepReadonly, policy, seconds } from "../../core/policy.ts";
import { delegationPolicies, policyNames } from "./policies/policies.ts";
import { defaultParameters } from "./policies/round.ts";
import type { QueueSettings } from "./queue.ts";
import { defaultRecalibrationRule, type RecalibrationRule } from "./recalibration/rule.ts";

export const delegationSettings = z.strictObject({
  policy: policy(z.enum(policyNames).default("nearest"), {
    title: "Delegation policy",
    basic: true,
    help:
      "Decides which crawlers are asked about a new subnet, and when the answer is good enough. " +
      `${delegationPolicies.map(({ name, words }) => `${name}: ${words}`).join("; ")}.`,
    unit: null,
    origin: "measured, test/bench/results/delegation.md",
    replayed: true,
  }),
  lambdaMs: policy(z.number().min(0).max(1000).default(2), {
    title: "Probe threshold (λ)",
    basic: true,
    help:
      "With the policy nearest, another crawler is probed as long as it is expected to save this " +
      "much RTT. Smaller values are more exact and cost more probes.",
    unit: "ms",
    origin: "measured, test/bench/results/delegation.md",
    replayed: true,
  }),
  thresholdMs: z.number().min(0).max(10_000).default(50),
  seed: z.int().min(0).max(0xffff_ffff).default(1),
  concurrentRounds: z.int().min(1).max(5000).default(256),
  getFirstFromUrls: z.int().min(0).max(1000).default(20),
  settleSeconds: z.number().min(0).max(600).default(10),
  expectedCrawlers: z.int().min(1).max(10_000).default(1),
});

/** Limits what one target, one network and one partner's machine receive from the whole fleet. */
const pace = z.strictObject({
  perCrawlerAtOnce: z.int().min(1).max(1000).default(8),
  perCrawlerPerSecond: policy(z.int().min(1).max(10_000).default(20), {
    title: "Probes per second per crawler",
    help: "The most probes that one partner's machine starts in any second.",
    unit: "probes/s",
    origin: "our judgement, nothing that a home connection notices",
  }),
  perTargetPerSecond: policy(z.int().min(1).max(1000).default(3), {
    title: "Probes per second per target",
    help: "The most crawlers that probe one address in any second.",
    unit: "probes/s",
    origin: "our judgement, below what any site takes for an attack",
  }),
  perNetworkPerSecond: policy(z.int().min(1).max(1000).default(5), {
    title: "Probes per second per network",
    help: "The most probes that one /24 (IPv4) or /48 (IPv6) receives in any second.",
    unit: "probes/s",
    origin: "our judgement, below what any network takes for a scan",
  }),
  atOnce: z.int().min(1).max(100_000).default(256),
  perSecond: policy(z.int().min(1).max(100_000).default(500), {
    title: "Probes per second, all crawlers",
    basic: true,
    help: "The most probes that the whole fleet starts in any second.",
    unit: "probes/s",
    origin: "our judgement",
  }),
});

export const probeSettings = z.strictObject({
  /**
   * A TCP connect measures the round trip alone and is comparable with RTTs between crawlers. HEAD adds the server's time
   * (the paper, section 4.2, found HEAD and ping about equally good).
   */
  method: policy(probeMethod.default("connect"), {
    title: "Probe method",
    help:
      "How crawlers probe: an HTTP HEAD, a TCP connect, or a ping (ICMP echo). Only what one " +
      "method measured is compared; crawlers that cannot ping, and sites that do not answer it, " +
      "are probed by connect.",
    unit: null,
    origin: "our judgement, a connect is the path alone; test/bench/results/probe-methods.md",
  }),
  tries: z.int().min(1).max(20).default(6),
  deadlineMs: z.int().min(10).max(60_000).default(3000),
  pace: pace.prefault({}),
});

export const recalibrationSettings = z.strictObject({
  slowerThanFactor: z.number().min(1.05).max(100).default(1.5),
  timesInARow: z.int().min(2).max(100).default(2),
  everySeconds: seconds(86_400).default(30),
  refreshDays: policy(z.number().min(1).max(3650).default(30), {
    title: "Probe again after, on average",
    help:
      "The budget of re-checks: as many rounds as probe each decision again once in so many days, " +
      "since no fetch time shows that another crawler has become nearer. They go where most is " +
      "saved: by how often subnets like it move, what a move costs, and what is fetched there.",
    unit: "days",
    origin: "our judgement",
  }),
});

/** Settings for GeoDNS hosts and for parts of subnets that measure apart. */
export const finerSettings = z.strictObject({
  everySeconds: seconds(86_400).default(30),
});

export const accuracySettings = z.strictObject({
  /** 0 disables sampling. At 4, some 2,900 samples yield an estimate within 2 % (Wilson interval). */
  subnetsPerHour: z.number().min(0).max(60).default(4),
});

type DelegationSettings = DeepReadonly<z.infer<typeof delegationSettings>>;

export type ProbingSettings = DeepReadonly<z.infer<typeof probeSettings>>;

export type RecalibrationSettings = DeepReadonly<z.infer<typeof recalibrationSettings>>;

export type FinerSettings = DeepReadonly<z.infer<typeof finerSettings>>;

export type AccuracySettings = DeepReadonly<z.infer<typeof accuracySettings>>;

export interface RoundSettings {
  readonly delegation: DelegationSettings;
  readonly probe: ProbingSettings;
  readonly trust: { readonly witnesses: boolean };
  readonly allowSpecialPurpose: AllowedSpecialPurpose;
}

/** Time after which a subnet that no crawler could take is retried. */
const roundRetryMs = 30_000;

export function queueSettings(config: RoundSettings): QueueSettings {
  const { policy, thresholdMs, lambdaMs, concurrentRounds, getFirstFromUrls } = config.delegation;
  return {
    round: {
      policy,
      parameters: { ...defaultParameters, thresholdMs, lambdaMs },
      probe: config.probe,
      hasWitnesses: config.trust.witnesses,
      allowSpecialPurpose: config.allowSpecialPurpose,
      getFirstFromUrls,
    },
    concurrentRounds,
    retryMs: roundRetryMs,
  };
}

export function recalibrationRule(config: {
  readonly recalibration: RecalibrationSettings;
}): RecalibrationRule {
  const { slowerThanFactor, timesInARow } = config.recalibration;
  return { ...defaultRecalibrationRule, factor: slowerThanFactor, inARow: timesInARow };
}
