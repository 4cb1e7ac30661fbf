/**
 * Complaints: reports of trouble with our requests, with what we did to the target at that time. This is recorded at once,
 * because fetches are deleted and paces change.
 */

import { bytesText, howMany, instantWords } from "#core/format";
import type { ReadOf, ToldOf } from "../../web/api-operation.ts";
import type { OptOutTarget } from "./opt-out.ts";
import type { deeds, fleetComplaint } from "./opt-outs-api.ts";

/** How many hours before the report count. */
export const deedsHours = 24;

/** Form reports per day; further ones are refused with an address to write to. */
export const mostReportsADay = 500;

/** Per /24 or /48, so that one network cannot use up the daily limit. */
export const mostReportsOfNetworkADay = 50;

export interface ComplaintReport {
  readonly target: OptOutTarget;
  /** As typed. */
  readonly targetText: string;
  readonly source: "form" | "operator";
  /** The complainant and a reply address. */
  readonly reporter: string;
  readonly words: string;
  /** The form's client address. */
  readonly requester: string | null;
}

/** What we did to a target in the 24 hours before a report, in bounded lists. */
export type Deeds = ToldOf<typeof deeds>;

export type Complaint = Omit<ReadOf<typeof fleetComplaint>, "answer" | "deeds"> & { readonly deeds: Deeds };

// A paragraph about our requests that can be forwarded to the complainant or the abuse desk of the crawler's partner.

export function deedsParagraph({ target, createdAt, deeds }: Complaint): string {
  const reported = `On ${instantWords(createdAt.toISOString())} we received a report about our crawler's requests to ${target}.`;
  if (deeds.requests + deeds.measurements === 0) {
    const known = deeds.hosts === 0 ? " We know no hosts there." : "";
    return (
      `${reported} We have no record of a request to it in the 24 hours before.${known} Requests with our ` +
      "User-Agent may not be ours: check our addresses and signatures."
    );
  }
  return [reported, requestWords(deeds), answerWords(deeds), mannerWords(deeds)]
    .filter((part) => part !== "")
    .join(" ");
}

/** For the operator only: each crawler involved and its partner. */
export function partnerLines({ deeds }: Complaint): string[] {
  return deeds.crawlers.map(({ name, address, place, contact, requests }) => {
    const where = [address, place].filter((part) => part !== null).join(", ");
    const partner =
      contact === null ? "its partner has given no contact" : `its partner can be reached at ${contact}`;
    return `${name}${where === "" ? "" : ` (${where})`}: ${howMany(requests, "request")}; ${partner}`;
  });
}

function requestWords(deeds: Deeds): string {
  const { requests, mostInAnHour, hosts, crawlers, bytes, firstAt, lastAt, measurements } = deeds;
  const measured =
    measurements === 0
      ? ""
      : ` Its distance was measured ${measurements === 1 ? "once" : `${measurements} times`}.`;
  if (requests === 0) return `In the 24 hours before, we requested no page.${measured}`;
  const from = crawlers.map(({ name, address }) => (address === null ? name : `${address} (${name})`));
  const when = firstAt && lastAt ? ` between ${instantWords(firstAt)} and ${instantWords(lastAt)}` : "";
  return (
    `In the 24 hours before, we sent ${howMany(requests, "request")} to ${howMany(hosts, "host")}${when}, ` +
    `at most ${mostInAnHour} within one hour, from ${listed(from)}; ${bytesText(bytes)} came ` +
    `back.${measured}`
  );
}

function answerWords({ answers }: Deeds): string {
  if (answers.length === 0) return "";
  const parts = answers.map(
    ({ outcome, status, requests }) =>
      `${requests} × ${status === null ? outcome.replaceAll("-", " ") : `status ${status}`}`,
  );
  return `The answers were ${listed(parts)}.`;
}

function mannerWords({ robots, crawlDelayMs, backOffMs }: Deeds): string {
  const found = Object.entries(robots).map(
    ([state, hosts]) => `${robotsWords[state] ?? state} for ${howMany(hosts, "host")}`,
  );
  const delay = crawlDelayMs === null ? "" : ` A Crawl-delay of ${crawlDelayMs / 1000} s was respected.`;
  const off =
    backOffMs === null
      ? ""
      : ` After its last 429 or 503 we left it alone for ${Math.round(backOffMs / 1000)} s.`;
  return `Its robots.txt was ${listed(found)}.${delay}${off}`;
}

const robotsWords: Readonly<Record<string, string>> = {
  rules: "read and followed",
  none: "absent, which allows everything",
  closed: "answered with an error, so that nothing was fetched,",
  unreachable: "unreachable, so that nothing was fetched,",
};

function listed(parts: readonly string[]): string {
  if (parts.length < 2) return parts.join("");
  return `${parts.slice(0, -1).join(", ")} and ${parts.at(-1)}`;
}
