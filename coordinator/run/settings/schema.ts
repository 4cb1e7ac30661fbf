/**
 * The settings that decide the fleet's behaviour. Each is declared with bounds and default in the room that uses it, and the
 * coordinator's file is read with them (coordinator/config.ts). A policy is a setting that operators may change at run time and
 * has its texts with it; those of the other settings are in coordinator/setting-words.
 */
import type { z } from "zod";
import type { DeepReadonly } from "../../core/deep-readonly.ts";
import type { PolicyNames } from "../../core/policy.ts";
import { changeSettings } from "../../crawl/changes/change-settings.ts";
import {
  frontierSettings,
  leaseSettings,
  paceSettings,
  scopeSettings,
} from "../../crawl/frontier/frontier-settings.ts";
import { recrawlSettings } from "../../crawl/recrawl/recrawl-settings.ts";
import { trustSettings } from "../../crawl/trust/trust-settings.ts";
import { balanceSettings } from "../../place/balance/balance-settings.ts";
import {
  delegationSettings,
  probeSettings,
  recalibrationSettings,
} from "../../place/delegation/delegation-settings.ts";
import { retentionSettings } from "./retention-settings.ts";

/** By the section names of the coordinator's file. */
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

/** Every section in full, including the settings that are fixed at the start. */
export type PolicySettings = {
  readonly [Name in PolicySectionName]: DeepReadonly<z.infer<(typeof policySections)[Name]>>;
};
