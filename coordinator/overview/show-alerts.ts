/** What operators are told now: the alert rules (core/alerts) over what is read at this moment. */
import type { Alert } from "./alerts.ts";
import { alertsOf } from "./alerts-of.ts";
import type { OperationReads } from "./operation-types.ts";

export interface AlertList {
  readonly at: string;
  readonly alerts: readonly Alert[];
}

export async function showAlerts(reads: Pick<OperationReads, "alertFacts">, now: Date): Promise<AlertList> {
  return { at: now.toISOString(), alerts: alertsOf(await reads.alertFacts(now)) };
}

/** "1 critical, 2 warnings"; an empty text when there is none. */
export function alertCountWords(alerts: readonly Alert[]): string {
  const critical = alerts.filter(({ severity }) => severity === "critical").length;
  const warnings = alerts.length - critical;
  const parts = [
    critical > 0 && `${critical} critical`,
    warnings > 0 && `${warnings} ${warnings === 1 ? "warning" : "warnings"}`,
  ];
  return parts.filter(Boolean).join(", ");
}

/** Said where there is none. */
export const allIsWell = "Nothing needs attention.";
