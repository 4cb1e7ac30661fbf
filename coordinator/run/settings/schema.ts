/**
 * The settings that determine how the fleet behaves. The room that uses a setting declares it with bounds and
 * default, and the coordinator's file is read by these declarations (coordinator/config.ts). A policy is a setting
 * that operators may change at run time, and has its texts in its declaration. The texts of other settings are in
 * coordinator/setting-words.
 */
import { z } from "zod";
import { type DeepReadonly, type PolicyNames, policy } from "../../core/policy.ts";
import { changeSettings } from "../../crawl/changes/change-settings.ts";
import {
  frontierSettings,
  leaseSettings,
  paceSettings,
  scopeSettings,
} from "../../crawl/frontier/frontier-settings.ts";
import { recrawlSettings } from "../../crawl/recrawl/recrawl-settings.ts";
import { trustSettings } from "../../crawl/trust/trust-settings.ts";
import { balanceSettings } from "../../place/balance/plan.ts";
import {
  delegationSettings,
  probeSettings,
  recalibrationSettings,
} from "../../place/delegation/delegation-settings.ts";

/** For how long data that grows every day is kept (storage/table-ends). */
const retentionSettings = z.strictObject({
  fetchDays: policy(z.int().min(2).max(3650).default(30), {
    title: "Keep fetches for",
    basic: true,
    help:
      "How long each fetch is kept with its times, sizes and outcome. After that only the counts " +
      "per URL, host and day remain. This takes the most disk space: 250 bytes per fetch.",
    unit: "days",
    origin: "our judgement, a distrusted crawler's fetches are searched over 30 days",
  }),
  leaseHours: policy(z.int().min(6).max(8760).default(24), {
    title: "Keep closed leases for",
    help: "How long a closed lease is kept. After that only the daily counts by outcome remain.",
    unit: "hours",
    origin: "our judgement, only open leases are needed",
  }),
  roundDays: policy(z.int().min(1).max(3650).default(90), {
    title: "Keep probe rounds for",
    help: "How long probe rounds are kept with their answers. The latest of each subnet, and those that decide a delegation, stay.",
    unit: "days",
    origin: "our judgement, three times recalibration.refreshDays",
  }),
  historyDays: policy(z.int().min(1).max(36_500).default(730), {
    title: "Keep delegation changes for",
    help: "How long the history says which crawler had a subnet before, and why it changed.",
    unit: "days",
    origin: "our judgement, a year and the one before it",
  }),
  rejectedDays: policy(z.int().min(1).max(3650).default(90), {
    title: "Keep rejected URLs for",
    help: "How long a URL without a place in the frontier is kept with the reason, after it was last named.",
    unit: "days",
    origin: "our judgement",
  }),
  recordDays: policy(z.int().min(30).max(36_500).default(1095), {
    title: "Keep records for",
    help: "How long the audit log is kept, and complaints, opt-outs, moves, invitations and tokens after they ended.",
    unit: "days",
    origin: "our judgement, three years",
  }),
});

export type RetentionSettings = DeepReadonly<z.infer<typeof retentionSettings>>;

/** The settings by section name of the coordinator's file. */
export const policySections = {
  delegation: delegationSettings,
  probe: probeSettings,
  balance: balanceSettings,
  recalibration: recalibrationSettings,
  recrawl: recrawlSettings,
  scope: scopeSettings,
  trust: trustSettings,
  lease: leaseSettings,
  frontier: frontierSettings,
  changes: changeSettings,
  retention: retentionSettings,
  pace: paceSettings,
} as const;

export type PolicySectionName = keyof typeof policySections;

export type PolicyName = {
  [Name in PolicySectionName]: PolicyNames<(typeof policySections)[Name], `${Name}.`>;
}[PolicySectionName];

/** All sections in full, including settings that are fixed at the start. */
export type PolicySettings = {
  readonly [Name in PolicySectionName]: DeepReadonly<z.infer<(typeof policySections)[Name]>>;
};
