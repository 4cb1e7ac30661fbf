/** Settings of taking results. */
import { following } from "../../core/live-settings.ts";
import type { ScopeSettings } from "../frontier/frontier-settings.ts";
import { fixedPlan, type PlanInForce } from "../recrawl/recrawl-plan.ts";
import { defaultRecrawlSettings } from "../recrawl/visit-findings.ts";
import type { TakeResultsSettings } from "./take-results.ts";

export function takeResultsSettings(
  config: { readonly scope: ScopeSettings; readonly recrawl: { readonly intervalHours: number } },
  plan: () => PlanInForce = () => fixedPlan,
): TakeResultsSettings {
  return following(() => ({
    scope: config.scope,
    recrawl: { ...defaultRecrawlSettings, intervalSeconds: config.recrawl.intervalHours * 3600 },
    plan: plan(),
  }));
}
