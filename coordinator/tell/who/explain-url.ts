/** What is told of a URL's record in plain words: how it was found, when it is fetched next and why, how it changes. */

import { because, note, type Standing, stop } from "#core/explanation";
import { howMany, instantWords, whenWords } from "#core/format";
import type { LeavingChannel } from "../../crawl/frontier/channel.ts";
import type { FetchLine, UrlReport } from "../../crawl/frontier/frontier-reports-api.ts";
import {
  type FrontierOrder,
  isNew,
  orderStrategy,
  scoreOf,
  told,
  worthShareOf,
} from "../../crawl/frontier/order/strategies.ts";
import type { PlacedUrl } from "../../crawl/frontier/report-reads.ts";
import { optOutWords } from "../../run/opt-outs/honour.ts";
import type { SiteWishes } from "../../run/opt-outs/opt-out.ts";
import type { OrderReport } from "./who-api.ts";

export function foundWords(url: Pick<UrlReport, "foundBy" | "depth" | "redirects">): string {
  switch (url.foundBy) {
    case "seed":
      return "as a seed";
    case "redirect":
      return `by ${howMany(url.redirects, "redirect")} in a row, ${howMany(url.depth, "link")} from a seed`;
    case "list":
      return "in a sitemap or a feed";
    case "link":
      return `by a link, ${howMany(url.depth, "link")} from a seed`;
  }
}

/** When it is fetched next, and why then. */
export function nextFetchWords(url: UrlReport): string {
  switch (url.state) {
    case "in-progress":
      return "a crawler has it in hand";
    case "held":
      return "when its host's budget grows";
    case "gone":
      return "not any more: it is gone";
    case "payment-required":
      return url.nextFetchAt === null
        ? "not any more: the site asks to be paid"
        : `asked again ${instantWords(url.nextFetchAt)}, in case it is free by then`;
    case "blocked-by-robots":
      if (url.nextFetchAt !== null) return `robots.txt is asked again ${instantWords(url.nextFetchAt)}`;
      return "not any more: it is refused";
    case "refused":
      return "not any more: it is refused";
    case "due":
    case "scheduled": {
      if (url.nextFetchAt === null) return "as soon as its turn comes";
      const when = url.state === "due" ? "due since" : "not before";
      return `${when} ${instantWords(url.nextFetchAt)}, ${whyThen(url)}`;
    }
  }
}

function whyThen(url: UrlReport): string {
  if (url.visits === 0) return "since it was never fetched";
  if (url.failures > 0) return `a new try after ${howMany(url.failures, "failure")} in a row`;
  const rate = url.changes.perDay;
  return `set by the recrawl policy${rate === null ? "" : ` for a page with ${told(rate)} changes per day`}`;
}

/** "0.5 changes a day, by 3 changes in 8 compared visits; 12 links, 0.7 of them changed"; empty: nothing is known. */
export function changeWords({ changes }: Pick<UrlReport, "changes">): string {
  const compared =
    changes.comparedVisits === 0
      ? []
      : [
          `${howMany(changes.contentChanges, "change")} in ${howMany(changes.comparedVisits, "compared visit")}`,
        ];
  const rate = changes.perDay === null ? [] : [`about ${told(changes.perDay)} per day`];
  const links = changes.outLinks === null ? [] : [howMany(changes.outLinks, "link")];
  const ratio =
    changes.linkRatio === null ? [] : [`${told(changes.linkRatio)} of them changed at the last visit`];
  return [[...compared, ...rate].join(", "), [...links, ...ratio].join(", ")]
    .filter((part) => part !== "")
    .join("; ");
}

/** What a visit found of the content, beside the visit before: changed, the same, or nothing to compare with. */
export function contentWords({ changed }: Pick<FetchLine, "changed">): string {
  return changed === null ? "–" : changed ? "changed" : "same";
}

/** The validators that the next fetch asks with; empty: none. */
export function validatorWords({ validators }: Pick<UrlReport, "validators">): string {
  const { etag, lastModified, digest } = validators;
  return [
    ...(etag === null ? [] : [`ETag ${etag}`]),
    ...(lastModified === null ? [] : [`Last-Modified ${lastModified}`]),
    ...(digest === null ? [] : [`SHA-256 ${digest.slice(0, 16)}…`]),
  ].join(", ");
}

/** What is not in the frontier. */
export function leftOutLine({ channelId, prefixes, why }: LeavingChannel): Standing {
  const [first = "", ...others] = prefixes;
  const more = others.length === 0 ? "" : ` and ${others.length} more`;
  return stop(
    "outside-channel",
    `No channel admits it: channel ${channelId} (${first}${more}) leaves it out, since ${why}. nearcrawl channels shows its rules.`,
  );
}

/** What is in it, and refused; the reason that is kept begins with the channel. */
export function takenOutLine({ lastReason }: UrlReport): Standing {
  return stop("outside-channel", `No channel admits it${because(lastReason)}.`);
}

export function orderReport({ facts, place, of, hostWorth }: PlacedUrl, order: FrontierOrder): OrderReport {
  const strategy = orderStrategy(order.name);
  return {
    strategy: strategy.name,
    words: strategy.words,
    list: isNew(facts) ? "new" : "old",
    newShare: strategy.mixesNewAndOld ? order.newShare : null,
    score: scoreOf(strategy, facts),
    reason: strategy.reason(facts),
    place,
    of,
    hostWorth,
    worthShare: worthShareOf(order),
  };
}

/** How its host's turn comes: "75 % of the hosts go by their best new URL, this one's is worth 9; the others by …". */
export function hostTurnWords({ hostWorth, worthShare }: OrderReport): string {
  const turns = "by how long they are due";
  if (worthShare === 0) return `hosts go ${turns}`;
  const worth =
    hostWorth === null ? "this one has none that is known and due" : `this one's is worth ${told(hostWorth)}`;
  return `${told(100 * worthShare)} % of the hosts go by their best new URL, and ${worth}; the others ${turns}`;
}

/** "3rd of 40 new URLs due on its host", or why it has no place. */
export function placeWords({ place, of, list, newShare }: OrderReport): string {
  const which = newShare === null ? "" : `${list} `;
  if (place === null) return "not queued, or too far back to be counted";
  return `${ordinal(place)} of ${of.toLocaleString("en-GB")} ${which}${of === 1 ? "URL" : "URLs"} due on its host`;
}

function ordinal(place: number): string {
  const teen = place % 100 >= 11 && place % 100 <= 13;
  const ending = teen ? "th" : (["th", "st", "nd", "rd"][place % 10] ?? "th");
  return `${place.toLocaleString("en-GB")}${ending}`;
}

export function wishLines({ optOut, complaints }: SiteWishes, now: Date): Standing[] {
  const lines = optOut === null ? [] : [stop("opted-out", optOutWords(optOut))];
  const latest = complaints[0];
  if (latest === undefined) return lines;
  const open = complaints.filter((complaint) => complaint.open).length;
  const state = open === 0 ? "all are closed" : open === 1 ? "one is open" : `${open} are open`;
  const words =
    `${howMany(complaints.length, "complaint")} about ${latest.target}, ` +
    `the latest ${whenWords(latest.at, now)} (number ${latest.complaintId}); ${state}.`;
  return [...lines, note("complaints", words)];
}
