/** All rules over the facts: what operators are told now, the critical first. The one list of page, command and metrics. */

import { crawlAlerts, fleetAlerts, relativeAlerts, upkeepAlerts } from "./alert-rules.ts";
import type { Alert, AlertFacts } from "./alerts.ts";

export function alertsOf(facts: AlertFacts): Alert[] {
  const all = [
    ...upkeepAlerts(facts),
    ...fleetAlerts(facts),
    ...crawlAlerts(facts),
    ...relativeAlerts(facts),
  ];
  const found = all.filter((alert) => alert !== null);
  return [
    ...found.filter(({ severity }) => severity === "critical"),
    ...found.filter(({ severity }) => severity === "warning"),
  ];
}
