/**
 * A complaint in plain words: a paragraph about what we did that can be sent on as it stands, to whoever complained
 * or to the abuse desk of the partner whose crawler it was.
 */

import { howMany, instantWords } from "#core/format";
import { bytesText } from "../who/words.ts";
import type { Complaint, Deeds } from "./complaints.ts";

export function deedsParagraph({ target, createdAt, deeds }: Complaint): string {
  const reported = `On ${instantWords(createdAt.toISOString())} a report about our crawler's requests to ${target} reached us.`;
  if (deeds.requests + deeds.measurements === 0) {
    const known = deeds.hosts === 0 ? " We know no host that belongs to it." : "";
    return `${reported} In the 24 hours before it, no request of ours to it is recorded.${known} Requests that name us in their User-Agent may not be ours: our addresses and signatures tell.`;
  }
  return [reported, requestWords(deeds), answerWords(deeds), mannerWords(deeds)]
    .filter((part) => part !== "")
    .join(" ");
}

/** For the operator alone: each crawler that asked, and the partner who hosts it. */
export function partnerLines({ deeds }: Complaint): string[] {
  return deeds.crawlers.map(({ name, address, place, contact, requests }) => {
    const where = [address, place].filter((part) => part !== null).join(", ");
    const partner =
      contact === null ? "its partner has told no contact" : `its partner can be reached at ${contact}`;
    return `${name}${where === "" ? "" : ` (${where})`}: ${howMany(requests, "request")}; ${partner}`;
  });
}

function requestWords(deeds: Deeds): string {
  const { requests, mostInAnHour, hosts, crawlers, bytes, firstAt, lastAt, measurements } = deeds;
  const measured =
    measurements === 0
      ? ""
      : ` How far away it is was measured ${measurements === 1 ? "once" : `${measurements} times`}.`;
  if (requests === 0) return `In the 24 hours before it, we requested no page.${measured}`;
  const from = crawlers.map(({ name, address }) => (address === null ? name : `${address} (${name})`));
  const when = firstAt && lastAt ? ` between ${instantWords(firstAt)} and ${instantWords(lastAt)}` : "";
  return `In the 24 hours before it, we sent ${howMany(requests, "request")} to ${howMany(hosts, "host")} of it${when}, at most ${mostInAnHour} within one hour, from ${listed(from)}; ${bytesText(bytes)} came back.${measured}`;
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
  const delay = crawlDelayMs === null ? "" : ` A Crawl-delay of ${crawlDelayMs / 1000} s was kept.`;
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
  unreachable: "not to be had, so that nothing was fetched,",
};

function listed(parts: readonly string[]): string {
  if (parts.length < 2) return parts.join("");
  return `${parts.slice(0, -1).join(", ")} and ${parts.at(-1)}`;
}
