/**
 * Reads a partner's policy for new releases, in `[releases]` of settings.toml, and applies it to an offer. The coordinator
 * cannot overrule it. Only a revocation ends a release that a partner would keep.
 */
import { z } from "zod";
import { releaseVersion } from "#protocol/messages";
import type { ReleaseReport } from "../core/supervisor-messages.ts";

const versions = z.array(releaseVersion).max(100).default([]);

export const releasePolicy = z.strictObject({
  /**
   * follow   a release is installed when it is offered
   * delay    it is installed `delayHours` after it was first offered here, if it is still offered
   * pin      only the version `pin` runs
   * ask      only versions that `accept` lists are installed
   */
  policy: z.enum(["follow", "delay", "pin", "ask"]).default("follow"),
  /** By the default of a day, problems of other crawlers have become known. */
  delayHours: z
    .number()
    .min(0)
    .max(24 * 365)
    .default(24),
  pin: releaseVersion.nullable().default(null),
  accept: versions,
  refuse: versions,
});
export type ReleasePolicy = Readonly<z.infer<typeof releasePolicy>>;

type PolicyAnswer = { readonly take: true } | ({ readonly take: false } & Omit<ReleaseReport, "version">);

const hourMs = 3_600_000;

export interface Judged {
  readonly policy: ReleasePolicy;
  readonly now: Date;
  readonly firstOfferedAt: Date;
  /** False if no release is running, so that there is none to stay with. */
  readonly hasRelease: boolean;
}

export function judgeByPolicy(version: string, judged: Judged): PolicyAnswer {
  const { policy, now, firstOfferedAt, hasRelease } = judged;
  if (policy.refuse.includes(version)) return pinned("the partner refuses this version");
  switch (policy.policy) {
    case "follow":
      return { take: true };
    case "pin":
      if (policy.pin === version || (policy.pin === null && !hasRelease)) return { take: true };
      return pinned(`the partner stays with ${policy.pin ?? "what runs"}`);
    case "ask":
      return policy.accept.includes(version)
        ? { take: true }
        : pinned("the partner has not accepted this version yet");
    case "delay":
      return hasRelease
        ? delayed(firstOfferedAt.getTime() + policy.delayHours * hourMs, now)
        : { take: true };
  }
}

export function policyWords({ policy, delayHours, pin, accept, refuse }: ReleasePolicy): string {
  const rule = {
    follow: "follow: releases are taken when they are offered",
    delay: `delay: releases are taken ${delayHours} hours after they were offered`,
    pin: `pin: only ${pin ?? "what runs"}`,
    ask: `ask: only ${accept.length > 0 ? accept.join(", ") : "what an administrator accepts"}`,
  }[policy];
  return (refuse.length > 0 ? `${rule}; never ${refuse.join(", ")}` : rule).slice(0, 500);
}

function pinned(reason: string): PolicyAnswer {
  return { take: false, state: "pinned", reason };
}

function delayed(untilMs: number, now: Date): PolicyAnswer {
  if (now.getTime() >= untilMs) return { take: true };
  return {
    take: false,
    state: "delayed",
    reason: `the partner takes it at ${new Date(untilMs).toISOString()}`,
  };
}
