/** Alerts about what operators look after: the coordinator, the database, the registry, releases, incidents. */

import type { AlertFacts, IncidentFacts } from "./alert-facts.ts";
import { registryDays, silentMinutes, databaseMs as slowDatabaseMs } from "./alert-thresholds.ts";
import { type Alert, alertAbout, alertOf } from "./alerts.ts";

const dayMs = 86_400_000;

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
