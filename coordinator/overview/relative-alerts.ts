/** Alerts about the coordinators above and below this one. */

import type { AlertFacts, RelativeFacts } from "./alert-facts.ts";
import { relativeMinutes } from "./alert-thresholds.ts";
import { type Alert, alertAbout, alertOf } from "./alerts.ts";

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
