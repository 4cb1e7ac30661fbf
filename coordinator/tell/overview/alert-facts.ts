/**
 * The facts that alert rules check, as plain values read at one moment (times in ms since 1970), and what a rule is: how it
 * finds crawlers and names times and shares.
 */
import { z } from "zod";
import { bytesText } from "#core/format";
import type { CrawlerRecord } from "../../place/crawlers/crawler.ts";
import { dateTime, type ReadOf, record } from "../../web/api-operation.ts";
import type { GatedHosts, SpanFigures } from "./queue-api.ts";

export interface AlertReads {
  alertFacts(now: Date): Promise<AlertFacts>;
}

/** A fact that is absent or null raises no alert. */
export interface AlertFacts {
  readonly nowMs: number;
  /** All crawlers but the revoked ones. */
  readonly crawlers: readonly CrawlerFacts[];
  /** How long due hosts have waited, in seconds; null if none is due. */
  readonly queue: { readonly p95Seconds: number | null; readonly unplacedSeconds: number | null };
  /** Links to other hosts that wait to be applied: how many, and how long the oldest has waited. */
  readonly linkOutbox: { readonly effects: number; readonly ageSeconds: number };
  readonly hour: Pick<SpanFigures, "fetches" | "failures">;
  /** Figures of the last 24 hours. */
  readonly day: Pick<SpanFigures, "fetchedBytes" | "shippedBytes">;
  /** When the last whole minute's figures were written; null if none were. */
  readonly figuresAtMs: number | null;
  /** Null when no registry was imported. */
  readonly registryAppliedMs: number | null;
  readonly registryAccident?: RegistryAccident | null;
  /** The incidents of the last hour, by crawler and kind. */
  readonly incidents: readonly IncidentFacts[];
  /** Invitations that can still be used. */
  readonly openInvitations: number;
  /** Newest first. */
  readonly releases: readonly ReleaseFacts[];
  /** When the statement of the newest release expires; null if there never was one. */
  readonly statedUntilMs: number | null;
  /** Duration of a minimal query. */
  readonly databaseMs: number;
  /** Coordinators above and below this one. */
  readonly relatives?: readonly RelativeFacts[];
  readonly accuracy: { readonly samples: number; readonly share: number | null };
  /** Absent if no backup is expected. */
  readonly backup?: BackupFacts | null;
  /** When the database last went back (run/journal). `failed` entries could not be restored; null if there is no journal. */
  readonly wentBack?: { readonly atMs: number; readonly failed: number | null } | null;
  /** The disk of the embedded database, or the space that an operator's server was given. */
  readonly disk?: DiskFacts | null;
  /** How many of the hosts that were ever asked are behind bot gates. */
  readonly botGates?: Pick<GatedHosts, "asked" | "providers">;
  /** What a running coordinator knows of itself. */
  readonly own?: OwnFacts;
  /** The mutes in force. */
  readonly mutes?: readonly AlertMute[];
  /** The alerts that the leading coordinator has noted (alerts/tell-alerts). */
  readonly noted?: readonly NotedAlert[];
  readonly channels?: readonly AlertChannel[];
}

/** In descending order. `critical`: the crawl stopped or does harm, look now. `warning`: look today. `info`: worth knowing. */
export const alertSeverities = ["critical", "warning", "info"] as const;

export type AlertSeverity = (typeof alertSeverities)[number];

/** What is stored about an alert in addition to what its rule finds now. */
export interface NotedAlert {
  readonly name: string;
  readonly beganAt: Date;
  /** Null while people have not been notified, or if they should not be. */
  readonly toldAt: Date | null;
  readonly acknowledged: Acknowledgement | null;
}

export interface Acknowledgement {
  readonly by: string;
  /** ISO 8601. */
  readonly at: string;
  readonly note: string;
  /** What the alert named when it was acknowledged. If it names anything else, it appears again. */
  readonly targets: readonly string[];
}

export const alertChannel = record("AlertChannel", {
  name: z.string(),
  kind: z.enum(["webhook", "email"]),
  place: z.string().describe("Where it sends to, without anything secret."),
  least: z.enum(alertSeverities).describe("The lowest severity that is sent."),
  deliveredAt: dateTime().nullable().describe("Null when nothing was delivered yet."),
  failingSince: dateTime().nullable().describe("Null when its last attempt succeeded, or there was none."),
  failures: z.int().describe("In a row."),
  failure: z.string().describe("Why the last attempt failed."),
  waiting: z.int().describe("Alerts that wait for its next attempt."),
});

export type AlertChannel = ReadOf<typeof alertChannel>;

export interface BackupFacts {
  /** A copy of the embedded server, or the archived log of an operator's own server. */
  readonly kind: "copy" | "archive";
  /** Null if there is no backup, or none any more. */
  readonly lastMs: number | null;
  /** The archiver has failed since its last success. */
  readonly isFailing: boolean;
  readonly warnAfterHours: number;
}

export interface RegistryAccident {
  /** The generation that was rolled back last, while none is in force; null if one is, or none ever was. */
  readonly emptiedFrom: number | null;
  /** Whether subnets are delegated but none of them is in the tree in force. */
  readonly noneInUse: boolean;
  /** Why the latest import was refused, if nothing was applied since. */
  readonly refusedWords: string | null;
}

export interface DiskFacts {
  readonly freeBytes: number;
  /** How much space is lost per day, at the pace of the last hours; null until it was measured for long enough. */
  readonly lostBytesPerDay: number | null;
}

/** These facts need no database. While it is gone, they are all that is known. Null or absent means that no fault is known. */
export interface OwnFacts {
  /** When this coordinator started; it has written no figures before. */
  readonly startedAtMs?: number;
  /** The data folder was lost. */
  readonly gone?: OwnFault | null;
  readonly clock: OwnFault | null;
  /** The database does not answer. */
  readonly silent: OwnFault | null;
  readonly unwritable: OwnFault | null;
  /** Others held all connections within the last minute. */
  readonly usedUp?: OwnFault | null;
  /** The journal lacks changes. */
  readonly journal: OwnFault | null;
  readonly dns?: OwnFault | null;
  /** The search engine is away, or changes wait for it. */
  readonly search?: OwnFault | null;
  /** The certificate that it presents itself; null behind a proxy. `notTaken` says why a renewed one is not in use. */
  readonly certificate?: {
    readonly file: string;
    readonly endsMs: number;
    readonly notTaken: string | null;
  } | null;
  /** The delays of the last minute or two; null if they are not watched. */
  readonly eventLoop: { readonly p99Ms: number; readonly mostMs: number } | null;
  readonly jobs: readonly JobFacts[];
  /** Since when no coordinator of this database leads. */
  readonly leaderlessSinceMs: number | null;
  /** Other coordinators of this database that stopped reporting without shutting down. */
  readonly silentCoordinators: readonly { readonly name: string; readonly sinceMs: number }[];
}

export interface OwnFault {
  readonly words: string;
  readonly sinceMs: number;
}

/** A scheduled job (core/scheduler). */
export interface JobFacts {
  readonly name: string;
  readonly everyMs: number;
  readonly runningSinceMs: number | null;
  /** When a run last succeeded. */
  readonly succeededMs: number | null;
  /** How many runs failed in a row. */
  readonly failures: number;
  readonly failingSinceMs: number | null;
  /** The words of the last failure. */
  readonly words: string | null;
}

export interface AlertMute {
  /** The rule's name. */
  readonly name: string;
  /** The muted crawler or release; null if the whole rule is muted. */
  readonly target: string | null;
  readonly until: Date;
  readonly reason: string;
  readonly mutedBy: string;
}

export interface RelativeFacts {
  readonly kind: "parent" | "child";
  readonly name: string;
  /** Null until it has connected. */
  readonly contactedMs: number | null;
  /** Null when the last exchange succeeded. */
  readonly failingSinceMs: number | null;
  readonly failure: string | null;
  /** When URLs for it were last dropped because too many waited. */
  readonly droppedMs: number | null;
}

export interface CrawlerFacts extends Pick<CrawlerRecord, "name" | "state"> {
  /** Null until it has connected. */
  readonly lastSeenMs: number | null;
  readonly drainingSinceMs: number | null;
  /** Whether its results or its probe reports are not trusted. */
  readonly distrusted: boolean;
  /** How many unacknowledged results are on its disk, as of its last heartbeat. */
  readonly waitingResults: number;
  /** Why its disk accepts no results, in its own words. */
  readonly diskFault?: string | null;
  /** Free space in its folder. Older versions do not report it. */
  readonly diskFreeBytes?: number | null;
  /** How many fetches it made in the last hour, and how many of them failed by its own fault or on the network path. */
  readonly fetches: number;
  readonly ownFailures: number;
  readonly networkFailures?: number;
  /** Whether a copied folder was noticed within the last day. */
  readonly copiedFolder: boolean;
  /** Whether it has joined but nothing has run there yet. */
  readonly neverRan: boolean;
  /** Null if an operator registered it by a key. */
  readonly joinedMs: number | null;
  /** When its session began; null if it has none. */
  readonly connectedMs: number | null;
  /** Why it gets no work although it runs; null if it gets some, or if none is due for it. */
  readonly idleWhy: string | null;
  /** Whether it is offline and its supervisor has said what it waits for. */
  readonly waits: boolean;
}

export interface IncidentFacts {
  readonly kind: string;
  /** Null if no known crawler is involved. */
  readonly crawler: string | null;
  readonly count: number;
}

export interface ReleaseFacts {
  readonly version: string;
  readonly stage: "none" | "one" | "percent" | "all";
  /** Whether it was offered; a release that never was does not count as held back. */
  readonly wasOffered: boolean;
  readonly revoked: boolean;
  /** Whether it is signed by a valid key, not expired and not revoked. */
  readonly mayRun: boolean;
  readonly words: string;
  /** How many crawlers refused it or rolled back from it. */
  readonly turnedDown: number;
}

export interface AlertRule {
  readonly name: string;
  readonly severity: AlertSeverity;
  /** Path of the page that shows the details. */
  readonly link: string;
  /** The value at which the alert begins, in the unit of `find`'s second argument. Absent for yes-or-no rules. */
  readonly threshold?: number;
  readonly looksFor: string;
  /** Empty if each finding has its own advice. */
  readonly advice: string;
  /** What its section of the runbook says in addition to `looksFor` and `advice`, in Markdown. */
  readonly runbook: string;
  /** Returns the finding; a text is one about the crawl as a whole. */
  readonly find: (facts: AlertFacts, threshold: number) => Finding | string | null | undefined;
}

/** `targets` are crawlers, releases, coordinators or kinds, the worst first. */
export interface Finding {
  readonly words: string;
  readonly targets?: readonly string[];
  readonly advice?: string;
}

export const minuteMs = 60_000;
export const dayMs = 86_400_000;

type Rule = Pick<AlertRule, "threshold" | "looksFor" | "find"> &
  Partial<Pick<AlertRule, "advice" | "runbook">>;

const ruleOf =
  <Severity extends AlertSeverity>(severity: Severity) =>
  <Name extends string>(
    name: Name,
    link: string,
    { looksFor, advice = "", runbook = "", ...rule }: Rule,
  ) => ({
    ...{ name, severity, link, advice: inOneLine(advice), runbook: inOneLine(runbook), ...rule },
    looksFor: inOneLine(fill(looksFor, rule.threshold ?? 0)),
  });
export const critical = ruleOf("critical");
export const warning = ruleOf("warning");
export const info = ruleOf("info");

/** Replaces {n}, {%} (a share) or {bytes} in a text with the threshold. */
export const fill = (text: string, threshold: number): string =>
  text
    .replace("{n}", String(threshold))
    .replace("{%}", `${threshold * 100} %`)
    .replace("{bytes}", bytesText(threshold));

export const inOneLine = (text: string): string => text.replace(/\s*\n\s*/g, " ");

/** Returns null if there are no targets. */
export function about(targets: readonly string[], words: string): Finding | null {
  return targets.length === 0 ? null : { words, targets };
}

export const namesOf = (some: readonly { readonly name: string }[]) => some.map(({ name }) => name);

export const minutesSince = (sinceMs: number, nowMs: number): number =>
  Math.floor((nowMs - sinceMs) / minuteMs);

export const isLong = (sinceMs: number | null, nowMs: number, minutes: number): boolean =>
  sinceMs !== null && nowMs - sinceMs > minutes * minuteMs;

export const sentence = (words: string): string => words.slice(0, 1).toUpperCase() + words.slice(1);

/** Formats a duration: "90 minutes", "26 hours", "3 days". */
export function span(seconds: number): string {
  if (seconds < 2 * 3600) return `${Math.round(seconds / 60)} minutes`;
  if (seconds < 48 * 3600) return `${Math.round(seconds / 3600)} hours`;
  return `${Math.round(seconds / 86_400)} days`;
}
