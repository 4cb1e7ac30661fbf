/** Words that pages and commands share. */
import { countryName } from "#core/country-names";
import { howMany, msText } from "#core/format";
import { moveIntervalWords } from "../../place/delegation/recalibration/ageing.ts";
import type { EffectiveDelegation } from "../../place/subnets/subnets-api.ts";
import type { PublishedReport, RollUp, WhoAnswer } from "./who-api.ts";

const takenForWords: Readonly<Record<Exclude<WhoAnswer["takenFor"]["type"], "unknown">, string>> = {
  url: "URL",
  host: "host",
  address: "address",
  range: "range",
  organisation: "organisation",
  country: "country",
  crawler: "crawler",
};

/** Such as "host www.example.org". */
export function takenForText(answer: WhoAnswer): string {
  const { type, value } = answer.takenFor;
  if (type === "country") return `country ${countryName(value)} (${value}), as registered`;
  return type === "unknown" ? `“${value}”` : `${takenForWords[type]} ${value}`;
}

/** Such as "aws says eu-central-1 (3.64.0.0/12, list of 2026-03-01)". */
export function publishedWords({ source, place, range, within, listDate }: PublishedReport): string {
  const where = place?.startsWith(`${source} `) ? place.slice(source.length + 1) : place;
  const says = where === null ? "names it without a place" : `says ${where}`;
  const facts = [
    range,
    ...(within === null ? [] : [`claimed within ${within}`]),
    ...(listDate === null ? [] : [`list of ${listDate}`]),
  ];
  return `${source} ${says} (${facts.join(", ")})`;
}

/** The verdict: who crawls it, or that nobody does. */
export function verdictOf(answer: WhoAnswer): string {
  if (answer.takenFor.type === "crawler" && answer.crawler)
    return `${answer.crawler.name} is ${answer.crawler.state}`;
  if (answer.organisation) return organisationVerdict(answer.organisation, answer.rollUp);
  if (answer.takenFor.type === "country") return capital(spaceWords(answer.rollUp));
  if (answer.effective) return `${answer.effective.crawler.name} ${crawlWords(answer)}`;
  if (answer.standing.some(({ code }) => code === "other-coordinator"))
    return "Another coordinator crawls this";
  if (!answer.found) return "No match";
  if (answer.rollUp !== null && answer.rollUp.subnets > 0)
    return `In its space: ${rollUpWords(answer.rollUp)}`;
  return "Nobody crawls this";
}

/** The codes of waiting, which is part of crawling. Other blocks, or an inherited delegation alone, are not. */
export const partOfCrawling: ReadonlySet<string> = new Set(["not-due", "politeness", "nothing-due"]);

/** Returns "crawls this" or "would crawl this". */
export function crawlWords(answer: WhoAnswer): string {
  const hindered = answer.standing.some((line) => line.stops && !partOfCrawling.has(line.code));
  return hindered || answer.effective?.inherited ? "would crawl this" : "crawls this";
}

function organisationVerdict(
  { name, subnetCount }: NonNullable<WhoAnswer["organisation"]>,
  rollUp: RollUp | null,
): string {
  return `${name} holds ${howMany(subnetCount, "subnet")}; ${spaceWords(rollUp)}`;
}

const capital = (text: string) => text.charAt(0).toUpperCase() + text.slice(1);

function spaceWords(rollUp: RollUp | null): string {
  return rollUp === null ? "its totals were not counted" : `in its space: ${rollUpWords(rollUp)}`;
}

/** Such as "checked 12 days ago; subnets like this move every 8 months on average (9 moves seen of its holder's)". */
export function ageingWords({ ageing, effective, at }: WhoAnswer): string | null {
  if (ageing === null || effective === null) return null;
  const days = Math.floor((Date.parse(at) - Date.parse(effective.since)) / 86_400_000);
  const checked = days < 1 ? "today" : `${howMany(days, "day")} ago`;
  return (
    `checked ${checked}; subnets like this move every ${moveIntervalWords(ageing)} on average ` +
    `(${howMany(ageing.moves, "move")} seen ${rateKindWords[ageing.kind]})`
  );
}

const rateKindWords = {
  all: "in all",
  country: "in its country",
  holder: "of its holder",
} as const;

/** Such as "for 1.2.3.0/24", "for this host by itself" or "inherited from 1.2.0.0/16". */
export function whence(effective: EffectiveDelegation): string {
  if (effective.finer === "host") return "for this host by itself";
  return effective.inherited ? `inherited from ${effective.range}` : `for ${effective.range}`;
}

// Totals over a country, organisation or range: subnets in use with their crawlers, and pages. A subnet is in use if it is
// assigned to a crawler or has hosts.

/** Such as "14 subnets in use: amsterdam 9, brussels 5; 240 pages; mean 8 ms". */
function rollUpWords(rollUp: RollUp): string {
  if (rollUp.subnets === 0) return "no subnet in use";
  const shares = [
    ...rollUp.byCrawler.slice(0, namedInWords).map(({ crawler, subnets }) => `${crawler} ${count(subnets)}`),
    ...othersWords(rollUp),
    ...(rollUp.unassigned > 0 ? [`not assigned directly ${count(rollUp.unassigned)}`] : []),
  ];
  return [
    `${howMany(rollUp.subnets, "subnet")} in use: ${shares.join(", ")}`,
    howMany(rollUp.pages, "page"),
    ...(rollUp.pages === 0 ? [] : [meanWords(rollUp.rtt)]),
  ].join("; ");
}

const namedInWords = 4;

function othersWords({ byCrawler, others }: RollUp): string[] {
  const unnamed = byCrawler.slice(namedInWords);
  const crawlers = unnamed.length + (others?.crawlers ?? 0);
  if (crawlers === 0) return [];
  const subnets = unnamed.reduce((sum, one) => sum + one.subnets, others?.subnets ?? 0);
  return [`${howMany(crawlers, "other crawler")} ${count(subnets)}`];
}

function meanWords({ meanMs }: RollUp["rtt"]): string {
  return meanMs === null ? "mean RTT: fewer than 30 pages" : `mean ${msText(meanMs)}`;
}

const count = (value: number) => value.toLocaleString("en-GB");
