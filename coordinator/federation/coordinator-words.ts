/** What page and command say of a coordinator's parent and children, in plain words. */
import { howMany, instantWords, whenWords } from "#core/format";
import type { Coordinators, RelatedCoordinator } from "./exchange-ports.ts";

export function linkWords(related: RelatedCoordinator, now: Date): string {
  const { state, failure, failingSince, contactedAt } = related;
  const since = failingSince === null ? "" : `, since ${instantWords(failingSince)}`;
  if (failure !== null) return `${failure}${since}`;
  if (contactedAt === null) return "has not spoken yet";
  const spoke = `last heard of ${whenWords(contactedAt, now)}`;
  return state === "silent" ? `silent: ${spoke}` : `connected, ${spoke}`;
}

export function ownsWords({ owns }: RelatedCoordinator): string {
  if (owns.length === 0) return "nothing yet";
  const shown = owns.slice(0, 8).join(", ");
  return owns.length > 8 ? `${shown} and ${owns.length - 8} more` : shown;
}

/** Where this coordinator stands, in one or two sentences. */
export function standingWords({ parent, children, above, settling }: Coordinators): string {
  const up =
    parent === null
      ? "It has no parent: what no child owns is its own."
      : `Its parent is ${parent.name}; it owns ${ownsWords(parent)}, and sends the rest up.`;
  const higher = above.length === 0 ? "" : ` Above the parent: ${howMany(above.length, "coordinator")}.`;
  const down = children.length === 0 ? "" : ` Below it: ${howMany(children.length, "coordinator")}.`;
  const moving = settling ? " Hosts are being handed over, since somebody owns something else now." : "";
  return `${up}${higher}${down}${moving}`;
}

/** What an away parent means for the crawl; null: it is not away. */
export function parentAwayWords(parent: RelatedCoordinator | null): string | null {
  if (parent === null || parent.failure === null) return null;
  const since = parent.failingSince === null ? "" : ` since ${instantWords(parent.failingSince)}`;
  return `The parent takes nothing${since} (${parent.failure}). This coordinator goes on with its own. Waiting to go up when it answers again: ${howMany(parent.waiting, "URL")} of others.`;
}
