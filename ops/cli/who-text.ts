/** The answer to `who` for people: the verdict, why, the chain of subnets as a tree, the probes as a table. */

import type { ProbeRound } from "#coordinator/delegation/rounds-api";
import { visitsListed } from "#coordinator/frontier/frontier-reports-api";
import { countWords } from "#coordinator/results/stated-uses";
import type { SubnetLine } from "#coordinator/subnets/subnets-api";
import { hostFactsText, worthWords } from "#coordinator/who/explain-host";
import {
  changeWords,
  foundWords,
  hostTurnWords,
  nextFetchWords,
  placeWords,
  validatorWords,
} from "#coordinator/who/explain-url";
import type { WhoAnswer } from "#coordinator/who/who-api";
import { ageingWords, publishedWords, takenForText, verdictOf, whence } from "#coordinator/who/words";
import { delegationCauseWords, roundCauseWords } from "#core/delegation-cause";
import { earlierVisitsWords, howMany, instantWords, msText, rttText } from "#core/format";
import { gateName } from "#protocol/bot-gate";
import { answerText } from "./answer-text.ts";
import { printable } from "./output.ts";
import { statedLines } from "./stated-text.ts";

export function whoText(answer: WhoAnswer): string {
  const sentences = [
    headLines(answer),
    standingLines(answer),
    chainLines(answer),
    publishedLines(answer),
    answer.round ? roundLines(answer.round) : [],
    answer.url ? urlLines(answer.url, answer) : [],
    statedLines(answer.url?.stated ?? null),
    answer.host ? hostLines(answer.host) : [],
    nearLines(answer),
  ];
  const { parts, round, history, url, waiting, rollUp, organisation, inside } = answer;
  const tables = answerText(
    {
      ...{ parts, probes: round?.probes, changes: history.slice(0, 10), fetches: url?.fetches, waiting },
      ...{ space: rollUp?.subnets === 0 ? null : rollUp, organisation, inside },
    },
    tableColumns,
  );
  const blocks = sentences.filter((lines) => lines.length > 0).map((lines) => lines.join("\n"));
  return [...blocks, tables].filter((block) => block !== "").join("\n\n");
}

const tableColumns = {
  parts: "range crawler rttMs subnetRttMs",
  probes: "ordinal crawler method rttMs outcome detail",
  changes: "changedAt from to reason",
  fetches: "fetchedAt crawler outcome status totalMs bodyBytes shippedBytes",
  byCrawler: "crawler subnets pages",
  subnets: "range name country crawler inherited rttMs",
};

function headLines(answer: WhoAnswer): string[] {
  const lines = [printable(`${verdictOf(answer)}  (${takenForText(answer)})`)];
  if (answer.addresses.length > 0 && answer.addressesFrom !== "question") {
    const from = answer.addressesFrom === "dns" ? ", looked up now" : "";
    lines.push(`at ${answer.addresses.join(", ")}${from}`);
  }
  const { effective } = answer;
  if (effective === null) return lines;
  const runnerUp = effective.runnerUp
    ? `, ahead of ${effective.runnerUp.name} (${rttText(effective.runnerUpRttMs)})`
    : "";
  lines.push(
    printable(`${rttText(effective.rttMs)}${runnerUp}`),
    `${whence(effective)}, since ${instantWords(effective.since)}: ${delegationCauseWords[effective.cause]}`,
  );
  const ageing = ageingWords(answer);
  if (ageing !== null) lines.push(ageing);
  return lines;
}

function standingLines(answer: WhoAnswer): string[] {
  return answer.standing.map((line) => printable(`${line.stops ? "✗" : "·"} ${line.words}`));
}

/** From the top down, each level indented under the one that holds it; the leaf between its neighbours. */
function chainLines({ chain, neighbours }: WhoAnswer): string[] {
  const fromTop = [...chain].reverse();
  const leafDepth = fromTop.findLastIndex(({ unary }) => !unary);
  return fromTop.flatMap((subnet, depth) => {
    const indent = depth === 0 ? "" : "   ".repeat(depth - 1);
    const beside = depth === leafDepth ? neighbours : null;
    const before = [...(beside?.before ?? [])].reverse().map((line) => neighbourLine(line, `${indent}├─ `));
    const after = (beside?.after ?? []).map((line) => neighbourLine(line, `${indent}├─ `));
    const branch = depth === 0 ? "" : `${indent}${after.length > 0 ? "├─ " : "└─ "}`;
    const facts = [
      subnet.name,
      subnet.holder?.name ?? "",
      subnet.country ?? "",
      subnet.registry,
      subnet.unary ? "one address, skipped" : "",
      subnet.delegation ? `→ ${subnet.delegation.crawler.name}, ${rttText(subnet.delegation.rttMs)}` : "",
    ];
    const own = printable(`${branch}${subnet.range}  ${facts.filter((fact) => fact !== "").join(" · ")}`);
    return [
      ...before,
      own,
      ...after.map((line, at) => (at === after.length - 1 ? line.replace("├", "└") : line)),
    ];
  });
}

function publishedLines({ published }: WhoAnswer): string[] {
  return published.map((one) => printable(`Published: ${publishedWords(one)}`));
}

function neighbourLine(line: SubnetLine, branch: string): string {
  const crawler = line.crawler === null ? "nobody" : `${line.crawler}${line.inherited ? ", inherited" : ""}`;
  return printable(`${branch}${line.range}  ${line.name ? `${line.name} · ` : ""}→ ${crawler}`);
}

function roundLines(round: ProbeRound): string[] {
  const ruledOut = round.notAsked.filter((one) => one.ruledOut);
  const chosen = [
    round.crawler && `chosen: ${round.crawler.name}`,
    round.runnerUp && `runner-up: ${round.runnerUp.name}`,
  ];
  return [
    `Probe round ${round.roundId} of ${instantWords(round.decidedAt)}, policy ${round.policy}: ${roundCauseWords[round.cause]}`,
    ...chosen.filter((words) => words !== null),
    printable(`${round.reasonWords}`),
    ...(ruledOut.length > 0
      ? [
          printable(
            `Ruled out by the triangle inequality: ${ruledOut
              .slice(0, 8)
              .map((one) => `${one.crawler.name} (at least ${msText(one.lowerBoundMs ?? 0)})`)
              .join(", ")}${ruledOut.length > 8 ? `, and ${ruledOut.length - 8} more` : ""}`,
          ),
        ]
      : []),
  ];
}

function urlLines(url: NonNullable<WhoAnswer["url"]>, { order }: WhoAnswer): string[] {
  const last =
    url.lastOutcome === null
      ? "never fetched"
      : `last outcome ${url.lastOutcome}${url.lastStatus === null ? "" : ` (${url.lastStatus})`}`;
  return [
    printable(`URL: ${url.state}, ${howMany(url.visits, "visit")}, ${last}`),
    ...(url.page
      ? [printable(`page: ${url.page.title || "(no title)"} · ${howMany(url.page.words, "word")}`)]
      : []),
    ...(url.worth ? [`  counts as: ${worthWords[url.worth]}`] : []),
    `  next fetch: ${nextFetchWords(url)}`,
    ...(order ? [`  its turn: ${placeWords(order)} (order ${order.strategy}: ${order.words})`] : []),
    ...(order ? [`  priority: ${order.reason}`, `  its host's turn: ${hostTurnWords(order)}`] : []),
    `  found: ${foundWords(url)}, ${instantWords(url.discoveredAt)}; ${howMany(url.backLinks, "link")} to it`,
    ...(changeWords(url) === "" ? [] : [`  changes: ${changeWords(url)}`]),
    ...(validatorWords(url) === "" ? [] : [printable(`  validators: ${validatorWords(url)}`, 300)]),
    `  key: ${url.id.hostHash} / ${url.id.urlHash}`,
    ...notKept(url),
  ];
}

function notKept({ visits, fetches }: NonNullable<WhoAnswer["url"]>): string[] {
  const words = fetches.length < visitsListed ? earlierVisitsWords(visits, fetches.length) : "";
  return words === "" ? [] : [`  ${words}`];
}

function hostLines(host: NonNullable<WhoAnswer["host"]>): string[] {
  const states = Object.entries(host.urlStates).map(([state, urls]) => `${urls} ${state}`);
  return [
    printable(
      `Host ${host.host}: ${host.state}, ${howMany(host.urlCount, "URL")} (${states.join(", ") || "none"})`,
    ),
    printable(`  ${hostFactsText(host)}`),
    ...statedOfHostLines(host),
    ...host.nextUrls
      .slice(0, 5)
      .map((next) => printable(`  next: ${next.url}  ${instantWords(next.nextFetchAt)}`, 160)),
  ];
}

function statedOfHostLines({ stated, payment, botGate }: NonNullable<WhoAnswer["host"]>): string[] {
  const of = `${stated.more ? "of the first" : "of"} ${howMany(stated.pages, "page")} in the index`;
  return [
    ...(stated.counts.length === 0 ? [] : [`  states: ${countWords(stated.counts)} (${of})`]),
    ...(payment === null
      ? []
      : [
          printable(
            `  asks to be paid: ${howMany(payment.inARow, "answer")} 402 in a row, ${payment.price === null ? "no price named" : `price ${payment.price}`}`,
          ),
        ]),
    ...(botGate === null
      ? []
      : [
          printable(
            `  bot gate: ${gateName(botGate.provider)}, since ${instantWords(botGate.since)}, ${howMany(botGate.tries, "try", "tries")} in a row`,
          ),
        ]),
  ];
}

function nearLines(answer: WhoAnswer): string[] {
  if (answer.nearMatches.length === 0) return [];
  const names = answer.nearMatches.map(
    (match) => `  ${match.name}${match.handle ? ` (${match.handle})` : ""}, ${match.type}`,
  );
  return [answer.found ? "Similar names" : "Did you mean", ...names.map((name) => printable(name))];
}
