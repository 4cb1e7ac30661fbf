/**
 * The settings that decide how the fleet behaves. Each stands with its bounds and its default in the room that goes by it, and
 * the coordinator's file is read with them (coordinator/config.ts). A policy is one that an operator may change while the
 * coordinator runs: its words stand with it. Those of the others are in coordinator/setting-words.
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

/** By the names of the sections in the coordinator's file. */
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

/** Every section in full, what cannot be changed while running included. */
export type PolicySettings = {
  readonly [Name in PolicySectionName]: DeepReadonly<z.infer<(typeof policySections)[Name]>>;
};
