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

/** What the alert rules look at: plain values, read at one moment by whoever asks. Times in ms since 1970. */

export interface AlertFacts {
  readonly nowMs: number;
  /** Without those that were shut out. */
  readonly crawlers: readonly CrawlerFacts[];
  /** Of the hosts that are due; seconds, null: none is due. */
  readonly queue: { readonly p95Seconds: number | null; readonly unplacedSeconds: number | null };
  /** Over the last hour. */
  readonly hour: FigureFacts;
  /** Over the last 24 hours. */
  readonly day: FigureFacts;
  /** When the last whole minute's figures were written; null: never. */
  readonly figuresAtMs: number | null;
  /** Of the registry in force; null: none was imported. */
  readonly registryAppliedMs: number | null;
  /** Of the last hour, by crawler and kind. */
  readonly incidents: readonly IncidentFacts[];
  /** Invitations that can still be used. */
  readonly openInvitations: number;
  /** Newest first. */
  readonly releases: readonly ReleaseFacts[];
  /** How long the database took for the simplest of questions. */
  readonly databaseMs: number;
  /** Above and below this coordinator; absent: nobody. */
  readonly relatives?: readonly RelativeFacts[];
  readonly accuracy: { readonly samples: number; readonly share: number | null };
}

export interface RelativeFacts {
  readonly kind: "parent" | "child";
  readonly name: string;
  /** Null: it has not spoken yet. */
  readonly contactedMs: number | null;
  /** Null: the last exchange succeeded. */
  readonly failingSinceMs: number | null;
  readonly failure: string | null;
  /** When URLs for it were given up last, because too many waited; null: never. */
  readonly droppedMs: number | null;
}

export interface CrawlerFacts {
  readonly name: string;
  readonly state: "online" | "offline" | "draining";
  /** Null: it has never connected. */
  readonly lastSeenMs: number | null;
  readonly drainingSinceMs: number | null;
  /** Its results, or its probe reports, are not believed. */
  readonly distrusted: boolean;
  /** On its disk, not yet acknowledged, as of its last heartbeat. */
  readonly waitingResults: number;
  /** Over the last hour. */
  readonly fetches: number;
  /** Of those, failed by its own or its machine's fault. */
  readonly ownFailures: number;
  /** A copied folder was noticed within the last day. */
  readonly copiedFolder: boolean;
  /** It has joined, and nothing has run there yet. */
  readonly neverRan: boolean;
  /** It is away, and its dock said that it waits for something. */
  readonly waits: boolean;
}

interface FigureFacts {
  readonly fetches: number;
  readonly fetchedBytes: number;
  readonly shippedBytes: number;
  readonly ourFailures: number;
}

export interface IncidentFacts {
  readonly kind: string;
  /** Null: of nobody known. */
  readonly crawler: string | null;
  readonly count: number;
}

export interface ReleaseFacts {
  readonly version: string;
  readonly stage: "none" | "one" | "percent" | "all";
  /** Somebody moved it, or it moved by itself; a release that nobody has offered yet is not held. */
  readonly wasOffered: boolean;
  readonly revoked: boolean;
  /** Signed by a key that counts, in its time, not revoked. */
  readonly mayRun: boolean;
  readonly words: string;
  /** Crawlers that would not take it or went back to the one before. */
  readonly turnedDown: number;
}

// From where on something is an alert. Each with its unit and where it comes from.

/** Most partners' machines are back from an update or a cut line within this; its subnets went to others long before. */
export const offlineMinutes = 60;

/** Subnets are handed over within minutes, leases run out in five; what still drains a day later was forgotten. */
export const drainingHours = 24;

/** A round takes seconds, and one that nobody answers is tried again for an hour (delegation/retry-wait). */
export const roundWaitMinutes = 60;

/** Of the hosts that are due, 95 of 100 wait less: a day late is a seventh of the usual recrawl interval (one week). */
export const queueAgeHours = 24;

/** Failures that are our software's fault should not happen at all; a few may come from one odd page. */
export const ourFailureShare = 0.01;

/** The crawler's or its machine's fault; a release is held back from 2 % more than others have (core/release). */
export const crawlerFailureShare = 0.1;

/** Fewer fetches say nothing of a share (as in releases/automatic-staging). */
export const leastFetches = 50;

/** UCYMicra ships less than a twentieth of what is fetched. */
export const shippedShare = 1 / 20;

/** Less than this fetched in a day is too little to judge by: some 250 pages of the usual 40 kB. */
export const leastFetchedBytes = 10_000_000;

/** The registries are imported each quarter (ops/systemd), and ten days are left to look at a plan. */
export const registryDays = 100;

/** A page shows what a dozen queries gave; at this each, it takes longer than people wait. */
export const databaseMs = 250;

/** Below nine of ten the policy does worse than any we measured (ops/evaluate: 90 to 99 %). */
export const accuracyShare = 0.9;

/** With fewer samples a few odd ones decide. */
export const leastSamples = 30;

/** Minutes are written as they end; so many in a row are missing only when nobody writes. */
export const silentMinutes = 5;

/** Coordinators ask their parent every few seconds, and when it is away, every five minutes at least. */
export const relativeMinutes = 15;

/** Results that a crawler has on its disk and that we have not acknowledged: minutes of work at full pace. */
export const waitingResults = 5000;

// What each rule looks for, with its threshold: for whoever wonders why something is an alert, or is none.

const percent = (share: number) => `${share * 100} %`;

export const ruleWords: Readonly<Record<AlertName, string>> = {
  "coordinator-silent": `no coordinator has written its figures for ${silentMinutes} minutes`,
  "no-crawler-connected": "no crawler is connected",
  "errors-by-us": `over ${percent(ourFailureShare)} of the last hour's fetches (${leastFetches} at least) failed in our own software`,
  "copied-folder": "two machines ran with one crawler's folder within the last day",
  "crawler-offline": `a crawler that is not draining has been away for over ${offlineMinutes} minutes`,
  "crawler-draining": `a crawler has been draining for over ${drainingHours} hours`,
  "crawler-distrusted": "a crawler's results or probe reports are not believed",
  "crawler-errors": `over ${percent(crawlerFailureShare)} of a crawler's fetches in the last hour (${leastFetches} at least) failed by its own fault`,
  "results-wait": `over ${waitingResults} results wait on a crawler's disk`,
  "subnets-wait": `a host waits for over ${roundWaitMinutes} minutes for a crawler to be found`,
  "queue-age": `one in twenty hosts that are due waits for over ${queueAgeHours} hours`,
  "compression-poor": `over ${percent(shippedShare)} of what was fetched in 24 hours (${leastFetchedBytes / 1e6} MB at least) was shipped`,
  "registry-old": `the registry in force is over ${registryDays} days old, or there is none`,
  incidents: "incidents were noted in the last hour",
  "release-missing":
    "no release is offered to all, while invitations are open or crawlers have joined where nothing has run yet",
  "crawler-waits": "a crawler that is away has said that nothing can run there until something is done",
  "release-held": "the newest release was offered, and is offered to nobody any more",
  "release-failing": "a crawler refused a release that is offered, or went back to the one before",
  "database-slow": `the database takes over ${databaseMs} ms for the simplest of questions`,
  "parent-away": `the parent coordinator was not reached, or refused, for over ${relativeMinutes} minutes`,
  "child-silent": `a coordinator below this one was not heard of for over ${relativeMinutes} minutes, or is refused`,
  "foreign-urls-dropped":
    "URLs for another coordinator were given up within the last day, because too many waited",
  "accuracy-low": `under ${percent(accuracyShare)} of the samples (${leastSamples} at least) are with a crawler that is nearly the nearest`,
};
