/** The reason for a delegation in plain words, for `who`, the web page and the log. */
import type { CrawlerId } from "#core/ids";
import {
  type AskedCrawler,
  type DelegationReason,
  parseReason,
  type ReasonOf,
  type RuledOutCrawler,
  type RunnerUp,
} from "./reason.ts";

export type NameOf = (crawlerId: CrawlerId) => string;

/** Ruled-out crawlers that are explained one by one. */
const explainedOneByOne = 3;

/** Sentences that a person understands who has never seen the code. Takes a stored reason as it is. */
export function explainReason(reason: unknown, nameOf: NameOf): string {
  const parsed = parseReason(reason);
  if (parsed === null) return "The reason was recorded in a form that this version does not know.";
  return sentencesOf(parsed, nameOf).filter(Boolean).join(" ");
}

function sentencesOf(reason: DelegationReason, nameOf: NameOf): string[] {
  switch (reason.type) {
    case "random":
      return [
        `Drawn at random from ${crawlers(reason.candidates)}, without a probe.`,
        takeOver(reason.runnerUp, nameOf),
      ];
    case "only-candidate":
      return ["It was the only crawler that could take the subnet, so nothing was probed."];
    case "same-company":
      return [
        `The same company's other subnets (${reason.subnetsOwned}) belong to this crawler alone, so it takes this one too, without a probe.`,
        takeOver(reason.runnerUp, nameOf),
      ];
    case "under-threshold":
      return [...underThreshold(reason, nameOf), takeOver(reason.runnerUp, nameOf)];
    case "fastest-of-all":
      return [...fastestOfAll(reason, nameOf), takeOver(reason.runnerUp, nameOf)];
    case "expected-gain":
      return [...expectedGain(reason, nameOf), takeOver(reason.runnerUp, nameOf)];
    case "by-prior":
      return [...byPrior(reason, nameOf), takeOver(reason.runnerUp, nameOf)];
    case "anycast":
      return anycast(reason, nameOf);
    case "no-candidates":
      return [
        "No crawler could take the subnet: all are offline, full, leaving, or may not reach it. It waits.",
      ];
  }
}

const foundAt = {
  company: "among the crawlers that own other subnets of the same company",
  subnet: "among the crawlers that own parts of this subnet",
  ancestor: "among the crawlers that own neighbouring subnets",
  slash8: "among the crawlers that own subnets in the same /8",
  root: "among all crawlers",
} as const;

function underThreshold(reason: ReasonOf<"under-threshold">, nameOf: NameOf): string[] {
  return [
    `It answered in ${ms(reason.rttMs)}, the first under the threshold of ${ms(reason.thresholdMs)}, found ${foundAt[reason.level]}.`,
    askedWords(reason.asked, reason.askedCount, nameOf),
  ];
}

function fastestOfAll(reason: ReasonOf<"fastest-of-all">, nameOf: NameOf): string[] {
  const nobodyUnder =
    reason.thresholdMs === null ? "" : ` Nobody was under the threshold of ${ms(reason.thresholdMs)}.`;
  return [
    `With ${ms(reason.rttMs)} it was the fastest; every crawler was asked.${nobodyUnder}`,
    askedWords(reason.asked, reason.askedCount, nameOf),
  ];
}

function expectedGain(reason: ReasonOf<"expected-gain">, nameOf: NameOf): string[] {
  return [
    reason.askedCount === 1
      ? `It was asked first, as the likeliest by past delegations nearby, and answered in ${ms(reason.rttMs)}.`
      : `With ${ms(reason.rttMs)} it was the fastest of those asked.`,
    reason.askedCount === 1 ? "" : askedWords(reason.asked, reason.askedCount, nameOf),
    ruledOutWords(reason.ruledOut, reason.ruledOutCount, nameOf),
    stopWords(reason, nameOf),
  ];
}

function stopWords(reason: ReasonOf<"expected-gain">, nameOf: NameOf): string {
  if (reason.stop === "all-asked") return "Every crawler was asked.";
  if (reason.stop === "all-ruled-out" || reason.next === null) return "Nobody was left who could be nearer.";
  const cost =
    reason.costMs < reason.lambdaMs
      ? `${ms(reason.costMs)} that a probe must be worth (λ is ${ms(reason.lambdaMs)}; less is asked where the answer would teach something for later)`
      : `${ms(reason.costMs)} that a probe must be worth (λ)`;
  return `Asking the next best, ${nameOf(reason.next.crawlerId)}, was expected to save ${ms(reason.next.expectedGainMs)}, less than the ${cost}.`;
}

function byPrior(reason: ReasonOf<"by-prior">, nameOf: NameOf): string[] {
  return [
    reason.kept
      ? "Nobody answered, so it stays with the crawler that had it. It will be tried again."
      : `Nobody answered, so the likeliest by past delegations nearby was taken (belief ${Math.round(reason.share * 100)} %). It will be tried again.`,
    askedWords(reason.asked, reason.askedCount, nameOf),
  ];
}

function anycast(reason: ReasonOf<"anycast">, nameOf: NameOf): string[] {
  const limit = reason.by === "light" ? "light in glass" : "the crawlers' own distance";
  return [
    `The range is anycast: ${nameOf(reason.near.crawlerId)} (${ms(reason.near.rttMs)}) and ${nameOf(reason.far.crawlerId)} (${ms(reason.far.rttMs)}) are so far apart that ${limit} allows one machine no less than ${ms(reason.leastSumMs)} for both together.`,
    reason.confirmed === null
      ? ""
      : `${nameOf(reason.confirmed.crawlerId)} (${ms(reason.confirmed.rttMs)}) confirmed it.`,
    reason.fast > 1
      ? `Latency cannot choose here, so of the ${reason.fast} crawlers that answered fast the one with the most room took it.`
      : "Latency cannot choose here, so it was delegated by load.",
    takeOver(reason.runnerUp, nameOf),
  ];
}

function askedWords(asked: readonly AskedCrawler[], count: number, nameOf: NameOf): string {
  if (count === 0) return "";
  const named = asked.map(
    (one) =>
      `${nameOf(one.crawlerId)} ${one.rttMs === null ? `no answer (${one.failed ?? "unknown"})` : ms(one.rttMs)}`,
  );
  const more = count - asked.length;
  return `Asked, in this order: ${named.join(", ")}${more > 0 ? ` and ${more} more` : ""}.`;
}

function ruledOutWords(ruledOut: readonly RuledOutCrawler[], count: number, nameOf: NameOf): string {
  if (count === 0) return "";
  const explained = ruledOut
    .slice(0, explainedOneByOne)
    .map(
      (one) =>
        `${nameOf(one.crawlerId)} (at least ${ms(one.lowerBoundMs)}, since ${nameOf(one.by)} measured ${ms(one.byRttMs)} and is ${ms(one.peerRttMs)} from it)`,
    );
  const more = count - explained.length;
  return `Ruled out by the triangle inequality, without asking: ${explained.join(", ")}${more > 0 ? ` and ${more} more` : ""}.`;
}

function takeOver(runnerUp: RunnerUp, nameOf: NameOf): string {
  if (runnerUp === null) return "";
  const distance =
    runnerUp.rttMs !== null
      ? ` (${ms(runnerUp.rttMs)})`
      : runnerUp.atMostMs !== null
        ? ` (not asked, at most about ${ms(runnerUp.atMostMs)})`
        : "";
  return `Runner-up: ${nameOf(runnerUp.crawlerId)}${distance}.`;
}

const crawlers = (count: number) => (count === 1 ? "1 crawler" : `${count} crawlers`);

/** Three figures at most: 0.034 ms, 3.4 ms, 34 ms, 340 ms. */
function ms(value: number): string {
  return `${value >= 99.95 ? Math.round(value) : Number(value.toPrecision(value < 1 ? 2 : 3))} ms`;
}

const briefWords: Readonly<Record<DelegationReason["type"], string>> = {
  random: "drawn at random",
  "only-candidate": "the only crawler that could take it",
  "same-company": "it has the company's other subnets",
  "under-threshold": "the first answer under the threshold",
  "fastest-of-all": "the fastest of all that were asked",
  "expected-gain": "the nearest, as far as probing was worth it",
  "by-prior": "nobody answered: the likeliest by past delegations",
  anycast: "the range answers from many places: by load",
  "no-candidates": "nobody could take it",
};

/** A reason in a few words, for a list; what is no reason of ours as it is called. */
export function briefReason(reason: Readonly<Record<string, unknown>>): string {
  const type = String(reason.type ?? "unknown");
  return briefWords[type as DelegationReason["type"]] ?? type;
}
