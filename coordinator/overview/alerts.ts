/** What operators are told: one alert for each rule that finds something, however many crawlers it concerns. */

/** `critical`: the crawl stands or does harm, look now. `warning`: look today. */
export type AlertSeverity = "critical" | "warning";

export interface Alert {
  /** Kebab-case; stands for the rule in metrics, in the runbook and in scripts. */
  readonly name: AlertName;
  readonly severity: AlertSeverity;
  /** What is the matter, in one sentence with its figures. */
  readonly words: string;
  /** What to do. */
  readonly advice: string;
  /** The page with what is behind it. */
  readonly link: string;
  /** Crawlers or releases that it is about, the worst first; the first few of `count`. */
  readonly targets: readonly string[];
  /** How many it is about; 1 when it is about the crawl as a whole. */
  readonly count: number;
}

/** Every rule there is, with how bad it is when it finds something. */
export const alertSeverities = {
  "coordinator-silent": "critical",
  "no-crawler-connected": "critical",
  "errors-by-us": "critical",
  "copied-folder": "critical",
  "crawler-offline": "warning",
  "crawler-draining": "warning",
  "crawler-distrusted": "warning",
  "crawler-errors": "warning",
  "results-wait": "warning",
  "subnets-wait": "warning",
  "queue-age": "warning",
  "compression-poor": "warning",
  "registry-old": "warning",
  incidents: "warning",
  "release-missing": "warning",
  "crawler-waits": "warning",
  "release-held": "warning",
  "release-failing": "warning",
  "database-slow": "warning",
  "accuracy-low": "warning",
  "parent-away": "warning",
  "child-silent": "warning",
  "foreign-urls-dropped": "warning",
} as const satisfies Readonly<Record<string, AlertSeverity>>;

export type AlertName = keyof typeof alertSeverities;

/** Names in the sentence; the rest is a number. */
const namedTargets = 5;

/** An alert about some crawlers or releases; null when there are none. */
export function alertAbout(
  targets: readonly string[],
  alert: { readonly name: AlertName; readonly link: string; readonly advice: string; readonly words: string },
): Alert | null {
  if (targets.length === 0) return null;
  const { name, link, advice, words } = alert;
  return {
    name,
    severity: alertSeverities[name],
    words: `${words}: ${listOf(targets)}.`,
    advice,
    link,
    targets: targets.slice(0, namedTargets),
    count: targets.length,
  };
}

/** An alert about the crawl as a whole. */
export function alertOf(
  name: AlertName,
  alert: { readonly link: string; readonly advice: string; readonly words: string },
): Alert {
  return { name, severity: alertSeverities[name], ...alert, targets: [], count: 1 };
}

function listOf(names: readonly string[]): string {
  const shown = names.slice(0, namedTargets).join(", ");
  return names.length > namedTargets ? `${shown} and ${names.length - namedTargets} more` : shown;
}
