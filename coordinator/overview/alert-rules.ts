/** Alerts about the crawl as a whole: what waits, what fails, what is shipped, how near it is fetched. */
import {
  type Alert,
  type AlertFacts,
  accuracyShare,
  alertAbout,
  alertOf,
  type CrawlerFacts,
  crawlerFailureShare,
  drainingHours,
  type IncidentFacts,
  leastFetchedBytes,
  leastFetches,
  leastSamples,
  offlineMinutes,
  ourFailureShare,
  queueAgeHours,
  type RelativeFacts,
  registryDays,
  relativeMinutes,
  roundWaitMinutes,
  shippedShare,
  silentMinutes,
  databaseMs as slowDatabaseMs,
  waitingResults,
} from "./alerts.ts";

export function crawlAlerts(facts: AlertFacts): readonly (Alert | null)[] {
  return [ourErrors(facts), subnetsWait(facts), queueAge(facts), compression(facts), accuracy(facts)];
}

function ourErrors({ hour: { fetches, ourFailures } }: AlertFacts): Alert | null {
  if (fetches < leastFetches || ourFailures <= fetches * ourFailureShare) return null;
  return alertOf("errors-by-us", {
    words: `${percent(ourFailures / fetches)} of the last hour's ${fetches} fetches failed by the fault of our own software.`,
    advice:
      "If it began with a release, hold that (nearcrawl release hold VERSION). The failures name the URLs to look at.",
    link: "/fleet/failures?blame=us",
  });
}

function subnetsWait({ queue: { unplacedSeconds } }: AlertFacts): Alert | null {
  if (unplacedSeconds === null || unplacedSeconds <= roundWaitMinutes * 60) return null;
  return alertOf("subnets-wait", {
    words: `Hosts whose subnet no crawler has been found for wait for up to ${span(unplacedSeconds)}.`,
    advice:
      "Look who was asked, and why nobody took it: all crawlers may be full, draining, or not allowed there.",
    link: "/fleet/queue?reason=no-delegation",
  });
}

function queueAge({ queue: { p95Seconds } }: AlertFacts): Alert | null {
  if (p95Seconds === null || p95Seconds <= queueAgeHours * 3600) return null;
  return alertOf("queue-age", {
    words: `One in twenty hosts that are due waits for more than ${span(p95Seconds)}.`,
    advice:
      "The queue says what for. Raise the budgets of crawlers that are full, invite more, or crawl less often (recrawl.intervalHours).",
    link: "/fleet/queue",
  });
}

function compression({ day: { fetchedBytes, shippedBytes } }: AlertFacts): Alert | null {
  if (fetchedBytes < leastFetchedBytes || shippedBytes <= fetchedBytes * shippedShare) return null;
  return alertOf("compression-poor", {
    words: `Crawlers shipped 1/${(fetchedBytes / shippedBytes).toFixed(1)} of what they fetched in the last 24 hours; 1/20 is the aim.`,
    advice:
      "Short pages and many failed fetches ship more than they fetch; the crawlers' table says whose share is the largest.",
    link: "/#fleet",
  });
}

function accuracy({ accuracy: { samples, share } }: AlertFacts): Alert | null {
  if (samples < leastSamples || share === null || share >= accuracyShare) return null;
  return alertOf("accuracy-low", {
    words: `Only ${percent(share)} of ${samples} sampled subnets are with a crawler that is nearly the nearest.`,
    advice:
      "The samples say whose subnets are off. A lower λ probes more before it decides; full crawlers pass theirs on.",
    link: "/accuracy",
  });
}

const percent = (share: number) => `${(share * 100).toFixed(1)} %`;

/** "90 minutes", "26 hours", "3 days". */
function span(seconds: number): string {
  if (seconds < 2 * 3600) return `${Math.round(seconds / 60)} minutes`;
  if (seconds < 48 * 3600) return `${Math.round(seconds / 3600)} hours`;
  return `${Math.round(seconds / 86_400)} days`;
}

// Alerts about crawlers: away, emptying, not believed, failing, behind.

const minuteMs = 60_000;

export function fleetAlerts(facts: AlertFacts): readonly (Alert | null)[] {
  return [
    nobodyConnected(facts),
    copied(facts),
    offline(facts),
    waiting(facts),
    draining(facts),
    distrusted(facts),
    failing(facts),
    behind(facts),
  ];
}

function nobodyConnected({ crawlers }: AlertFacts): Alert | null {
  if (crawlers.some(({ state, lastSeenMs }) => state !== "offline" && lastSeenMs !== null)) return null;
  const words =
    crawlers.length === 0
      ? "No crawler is registered, so nothing is crawled."
      : `None of ${crawlers.length} registered crawlers is connected, so nothing is crawled.`;
  const advice =
    crawlers.length === 0
      ? "Invite a partner: nearcrawl fleet invite --name NAME."
      : "Look whether partners can reach this coordinator (its address, its certificate, a firewall), then ask one of them for the crawler's own words.";
  return alertOf("no-crawler-connected", { words, advice, link: "/fleet" });
}

function copied({ crawlers }: AlertFacts): Alert | null {
  const names = crawlers.filter(({ copiedFolder }) => copiedFolder).map(({ name }) => name);
  return alertAbout(names, {
    name: "copied-folder",
    words: "Two machines run with one crawler's folder",
    advice: "Have one of them stopped, or invite that crawler anew: nearcrawl fleet reinvite NAME.",
    link: "/fleet/incidents?kind=copied-folder",
  });
}

function offline({ crawlers, nowMs }: AlertFacts): Alert | null {
  const limitMs = nowMs - offlineMinutes * minuteMs;
  // Who drains and goes has been taken leave of.
  const gone = crawlers.filter(
    ({ state, lastSeenMs, drainingSinceMs, waits }) =>
      state === "offline" &&
      !waits &&
      drainingSinceMs === null &&
      lastSeenMs !== null &&
      lastSeenMs < limitMs,
  );
  return alertAbout(
    namesBy(gone, ({ lastSeenMs }) => lastSeenMs ?? 0),
    {
      name: "crawler-offline",
      words: `Offline for more than ${offlineMinutes} minutes`,
      advice:
        "Its page says why and what its last words were; write to the partner. Its subnets are with others. If it is gone for good: nearcrawl fleet kill NAME.",
      link: "/fleet",
    },
  );
}

function waiting({ crawlers }: AlertFacts): Alert | null {
  const names = crawlers.filter(({ waits }) => waits).map(({ name }) => name);
  return alertAbout(names, {
    name: "crawler-waits",
    words: "Crawlers that run nothing until something is done",
    advice: "Each says what it waits for, and who can do it: its page, or nearcrawl fleet show NAME.",
    link: "/fleet",
  });
}

function draining({ crawlers, nowMs }: AlertFacts): Alert | null {
  const limitMs = nowMs - drainingHours * 60 * minuteMs;
  const long = crawlers.filter(
    ({ drainingSinceMs, distrusted: isDistrusted }) =>
      drainingSinceMs !== null && drainingSinceMs < limitMs && !isDistrusted,
  );
  return alertAbout(
    namesBy(long, ({ drainingSinceMs }) => drainingSinceMs ?? 0),
    {
      name: "crawler-draining",
      words: `Draining for more than ${drainingHours} hours`,
      advice: "Take it back with nearcrawl fleet resume NAME, or shut it out with nearcrawl fleet kill NAME.",
      link: "/fleet",
    },
  );
}

function distrusted({ crawlers }: AlertFacts): Alert | null {
  const names = crawlers.filter((crawler) => crawler.distrusted).map(({ name }) => name);
  return alertAbout(names, {
    name: "crawler-distrusted",
    words: "What these crawlers report is not believed",
    advice:
      "Read the evidence: nearcrawl fleet trust NAME. Shut it out, or restore it if a proxy or a site was to blame.",
    link: "/fleet/trust",
  });
}

function failing({ crawlers }: AlertFacts): Alert | null {
  const share = ({ fetches, ownFailures }: CrawlerFacts) => ownFailures / fetches;
  const bad = crawlers.filter((one) => one.fetches >= leastFetches && share(one) > crawlerFailureShare);
  return alertAbout(
    namesBy(bad, (one) => -share(one)),
    {
      name: "crawler-errors",
      words: `More than ${crawlerFailureShare * 100} % of the last hour's fetches failed by the crawler's own fault`,
      advice: "Its failures say what: a full disk, a resolver, a proxy. Tell the partner, or drain it.",
      link: "/fleet/failures?blame=crawler",
    },
  );
}

function behind({ crawlers }: AlertFacts): Alert | null {
  const full = crawlers.filter((one) => one.waitingResults > waitingResults);
  return alertAbout(
    namesBy(full, (one) => -one.waitingResults),
    {
      name: "results-wait",
      words: `More than ${waitingResults} results wait on a crawler's disk`,
      advice:
        "If it is one crawler: its line is slow, or it was away. If all: the database takes results more slowly than they come.",
      link: "/fleet",
    },
  );
}

/** Ascending by what it gives; equals by name. */
function namesBy(crawlers: readonly CrawlerFacts[], order: (crawler: CrawlerFacts) => number): string[] {
  return [...crawlers]
    .sort((a, b) => order(a) - order(b) || (a.name < b.name ? -1 : 1))
    .map(({ name }) => name);
}

// Alerts about the coordinators above and below this one.

const dayMs = 86_400_000;
const link = "/coordinators";

export function relativeAlerts({ relatives = [], nowMs }: AlertFacts): readonly (Alert | null)[] {
  const parent = relatives.find(({ kind }) => kind === "parent");
  return [
    parent ? awayParent(parent, nowMs) : null,
    silentChildren(relatives, nowMs),
    dropped(relatives, nowMs),
  ];
}

function awayParent({ name, failingSinceMs, failure }: RelativeFacts, nowMs: number): Alert | null {
  if (failingSinceMs === null || nowMs - failingSinceMs <= relativeMinutes * 60_000) return null;
  const minutes = Math.floor((nowMs - failingSinceMs) / 60_000);
  return alertOf("parent-away", {
    words: `The parent coordinator ${name} takes nothing for ${minutes} minutes (${failure ?? "no answer"}); URLs of others wait here.`,
    advice: "nearcrawl coordinators list says why and how many wait; they go up when it answers again.",
    link,
  });
}

/** One that was invited and has never come is no alert. */
function silentChildren(relatives: readonly RelativeFacts[], nowMs: number): Alert | null {
  const isLong = (sinceMs: number | null) => sinceMs !== null && nowMs - sinceMs > relativeMinutes * 60_000;
  const silent = relatives.filter(
    ({ kind, contactedMs, failingSinceMs }) =>
      kind === "child" && (isLong(contactedMs) || isLong(failingSinceMs)),
  );
  return alertAbout(
    silent.map(({ name }) => name),
    {
      name: "child-silent",
      words: "Coordinators below this one are silent or refused",
      advice: "What is theirs waits here; where one does not come back: nearcrawl coordinators remove NAME.",
      link,
    },
  );
}

function dropped(relatives: readonly RelativeFacts[], nowMs: number): Alert | null {
  const names = relatives
    .filter(({ droppedMs }) => droppedMs !== null && nowMs - droppedMs < dayMs)
    .map(({ name }) => name);
  return alertAbout(names, {
    name: "foreign-urls-dropped",
    words: "Too many URLs wait for other coordinators, and the least linked were given up",
    advice:
      "Bring the other side back, or raise coordinators.mostWaitingUrls; what is found again comes again.",
    link,
  });
}

// Alerts about what operators look after: the coordinator, the database, the registry, releases, incidents.

export function upkeepAlerts(facts: AlertFacts): readonly (Alert | null)[] {
  return [
    silent(facts),
    slowDatabase(facts),
    oldRegistry(facts),
    missingRelease(facts),
    heldRelease(facts),
    failingRelease(facts),
    incidents(facts),
  ];
}

/** Where none has ever written, none has run with this database yet. */
function silent({ figuresAtMs, nowMs }: AlertFacts): Alert | null {
  if (figuresAtMs === null || nowMs - figuresAtMs <= (silentMinutes + 1) * 60_000) return null;
  const minutes = Math.floor((nowMs - figuresAtMs) / 60_000);
  return alertOf("coordinator-silent", {
    words: `No coordinator has written its figures for ${minutes} minutes.`,
    advice:
      "Start it again; its log says why it ended. Crawlers finish what they hold and come back by themselves.",
    link: "/",
  });
}

function slowDatabase({ databaseMs }: AlertFacts): Alert | null {
  if (databaseMs <= slowDatabaseMs) return null;
  return alertOf("database-slow", {
    words: `The database takes ${Math.round(databaseMs)} ms to answer the simplest of questions.`,
    advice: "Look at its disk, its connections, and who else uses the machine.",
    link: "/",
  });
}

function oldRegistry({ registryAppliedMs, nowMs }: AlertFacts): Alert | null {
  const days = registryAppliedMs === null ? null : Math.floor((nowMs - registryAppliedMs) / dayMs);
  if (days !== null && days <= registryDays) return null;
  return alertOf("registry-old", {
    words:
      days === null
        ? "No registry is in force, so all of IPv4 and all of IPv6 are one subnet each, with one crawler."
        : `The registry in force was applied ${days} days ago; it is to be imported each quarter.`,
    advice: "Fetch the files, look at the plan and apply it (runbook: refreshing the registries).",
    link: "/registry",
  });
}

/** Who joins now would run nothing. */
function missingRelease({ releases, crawlers, openInvitations }: AlertFacts): Alert | null {
  const waiting = crawlers.filter(({ neverRan }) => neverRan).length;
  if (openInvitations + waiting === 0) return null;
  if (releases.some(({ stage, mayRun }) => stage === "all" && mayRun)) return null;
  return alertOf("release-missing", {
    words: `No release is offered to all, so crawlers that join run nothing: ${waiting} wait${waiting === 1 ? "s" : ""} already, and ${openInvitations} more ${openInvitations === 1 ? "is" : "are"} invited.`,
    advice:
      releases.length === 0
        ? "A coordinator publishes the first one as it starts, while its own release key counts; else sign and publish one (runbook: releasing the crawler)."
        : "Offer one: nearcrawl release list, then nearcrawl release stage VERSION --to all. One that has expired is signed and published anew.",
    link: "/fleet/versions",
  });
}

/** Of the newest release alone: what is older has been passed over. */
function heldRelease({ releases }: AlertFacts): Alert | null {
  const newest = releases[0];
  if (newest?.stage !== "none" || !newest.wasOffered || newest.revoked) return null;
  return alertAbout([newest.version], {
    name: "release-held",
    words: `The newest release is offered to nobody (${newest.words || "it was held"})`,
    advice: "Sign a better one, or offer it again: nearcrawl release stage VERSION --to one.",
    link: "/fleet/versions",
  });
}

function failingRelease({ releases }: AlertFacts): Alert | null {
  const failing = releases.filter(({ stage, turnedDown }) => stage !== "none" && turnedDown > 0);
  return alertAbout(
    failing.map(({ version, turnedDown }) => `${version} (${turnedDown})`),
    {
      name: "release-failing",
      words: "Crawlers refused a release or went back to the one before",
      advice:
        "nearcrawl release list says how many, nearcrawl fleet show NAME why; hold it unless it is a single odd machine.",
      link: "/fleet/versions",
    },
  );
}

function incidents({ incidents: entries }: AlertFacts): Alert | null {
  const byKind = new Map<string, number>();
  for (const { kind, count } of entries) byKind.set(kind, (byKind.get(kind) ?? 0) + count);
  const kinds = [...byKind].sort(([, a], [, b]) => b - a).map(([kind, count]) => `${kind} (${count})`);
  const whose = whoseWords(entries);
  return alertAbout(kinds, {
    name: "incidents",
    words: `Incidents in the last hour${whose}`,
    advice: "Each kind has a line in the runbook (watching the fleet) that says what it means.",
    link: "/fleet/incidents",
  });
}

function whoseWords(entries: readonly IncidentFacts[]): string {
  const names = [...new Set(entries.flatMap(({ crawler }) => crawler ?? []))];
  if (names.length === 0) return "";
  return names.length === 1 ? `, of ${names[0]}` : `, of ${names.length} crawlers`;
}
