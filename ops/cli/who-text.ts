/** The answer to `who` for people: the verdict, why, the chain of subnets as a tree, the probes as a table. */

import type { FinerReport, ProbeRound } from "#coordinator/delegation/rounds-api";
import { type FetchLine, visitsListed } from "#coordinator/frontier/frontier-reports-api";
import { countWords } from "#coordinator/results/stated-uses";
import type { SubnetLine, SubnetList } from "#coordinator/subnets/subnets-api";
import { hostFactsText, worthWords } from "#coordinator/who/explain-host";
import {
  changeWords,
  contentWords,
  foundWords,
  hostTurnWords,
  nextFetchWords,
  placeWords,
  validatorWords,
} from "#coordinator/who/explain-url";
import type { RollUp, WhoAnswer } from "#coordinator/who/who-api";
import {
  ageingWords,
  probeText,
  publishedWords,
  takenForText,
  verdictOf,
  whence,
} from "#coordinator/who/words";
import { delegationCauseWords, roundCauseWords } from "#core/delegation-cause";
import {
  bytesText,
  earlierVisitsWords,
  howMany,
  instantWords,
  msText,
  rttText,
  tooFewWords,
} from "#core/format";
import { gateName } from "#protocol/bot-gate";
import { formatTable, printable } from "./output.ts";
import { statedLines } from "./stated-text.ts";

export function whoText(answer: WhoAnswer): string {
  return [
    headLines(answer),
    standingLines(answer),
    chainLines(answer),
    publishedLines(answer),
    finerLines(answer.parts),
    answer.round ? roundLines(answer.round) : [],
    historyLines(answer),
    answer.url ? urlLines(answer.url, answer) : [],
    statedLines(answer.url?.stated ?? null),
    answer.host ? hostLines(answer.host) : [],
    waitingLines(answer),
    answer.rollUp ? rollUpLines(answer.rollUp) : [],
    answer.organisation ? organisationLines(answer.organisation) : [],
    answer.inside && answer.inside.subnets.length > 0 ? subnetLines(answer.inside, "Subnets") : [],
    nearLines(answer),
  ]
    .filter((lines) => lines.length > 0)
    .map((lines) => lines.join("\n"))
    .join("\n\n");
}

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
  const rows = round.probes.map((probe) => [
    String(probe.ordinal),
    probe.crawler.name,
    probe.method,
    printable(probeText(probe), 60),
    probe.crawler.crawlerId === round.crawler?.crawlerId
      ? "chosen"
      : probe.crawler.crawlerId === round.runnerUp?.crawlerId
        ? "runner-up"
        : "",
  ]);
  const ruledOut = round.notAsked.filter((one) => one.ruledOut);
  return [
    `Probe round ${round.roundId} of ${instantWords(round.decidedAt)}, policy ${round.policy}: ${roundCauseWords[round.cause]}`,
    printable(`${round.reasonWords}`),
    formatTable(
      [
        { title: "#", align: "right" },
        { title: "Crawler" },
        { title: "Method" },
        { title: "RTT", align: "right" },
        { title: "" },
      ],
      rows,
    ),
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

function historyLines(answer: WhoAnswer): string[] {
  if (answer.history.length === 0) return [];
  const rows = answer.history
    .slice(0, 10)
    .map((change) => [
      instantWords(change.changedAt),
      change.from ?? "–",
      change.to ?? "nobody",
      printable(change.reason, 70),
    ]);
  return [
    "History",
    formatTable([{ title: "When" }, { title: "From" }, { title: "To" }, { title: "Why" }], rows),
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
    ...fetchTable(url.fetches),
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

function fetchTable(fetches: readonly FetchLine[]): string[] {
  if (fetches.length === 0) return [];
  const rows = fetches.map((line) => [
    instantWords(line.fetchedAt),
    line.crawler,
    `${line.outcome}${line.status === null ? "" : ` ${line.status}`}`,
    contentWords(line),
    msText(line.totalMs),
    bytesText(line.bodyBytes),
    bytesText(line.shippedBytes),
  ]);
  return [
    formatTable(
      [
        { title: "Fetched" },
        { title: "By" },
        { title: "Outcome" },
        { title: "Content" },
        { title: "Time", align: "right" },
        { title: "Page", align: "right" },
        { title: "Shipped", align: "right" },
      ],
      rows,
    ),
  ];
}

function waitingLines(answer: WhoAnswer): string[] {
  const { waiting } = answer;
  if (waiting === null || waiting.hosts === 0) return [];
  const names = waiting.next.map((next) => next.host).join(", ");
  return [
    printable(
      `Waiting in this subnet: ${howMany(waiting.hosts, "host")}${waiting.more ? " or more" : ""}: ${names}`,
    ),
  ];
}

/** Nothing where nothing is in use: the verdict has said so. */
function rollUpLines(rollUp: RollUp): string[] {
  if (rollUp.subnets === 0) return [];
  const { byCrawler, others, unassigned, rtt } = rollUp;
  const rows = [
    ...byCrawler.map((one) => [one.crawler, String(one.subnets), String(one.pages)]),
    ...(others === null
      ? []
      : [[howMany(others.crawlers, "other crawler"), String(others.subnets), String(others.pages)]]),
    ...(unassigned === 0 ? [] : [["not assigned directly", String(unassigned), "–"]]),
  ];
  const registered =
    rollUp.registered === null ? "" : ` of ${howMany(rollUp.registered, "registered subnet")}`;
  const rttWords =
    rtt.meanMs === null || rtt.medianMs === null
      ? `${tooFewWords} (${howMany(rtt.pages, "page")} in measured subnets)`
      : `mean ${msText(rtt.meanMs)}, median ${msText(rtt.medianMs)}, weighted by ${howMany(rtt.pages, "page")}`;
  return [
    `In its space: ${howMany(rollUp.subnets, "subnet")} in use${registered}, ${howMany(rollUp.hosts, "host")} (${rollUp.dueHosts} due), ${howMany(rollUp.pages, "page")}, ${bytesText(rollUp.bytes)} fetched`,
    `RTT: ${rttWords}`,
    formatTable(
      [{ title: "Crawler" }, { title: "Subnets", align: "right" }, { title: "Pages", align: "right" }],
      rows,
    ),
  ];
}

function organisationLines(organisation: NonNullable<WhoAnswer["organisation"]>): string[] {
  return [
    printable(
      `${organisation.handle ?? organisation.holderKey} holds ${howMany(organisation.subnetCount, "subnet")}`,
    ),
    ...subnetLines(organisation.list, "Subnets"),
  ];
}

function subnetLines(list: SubnetList, title: string): string[] {
  const rows = list.subnets
    .slice(0, 30)
    .map((line) => [
      line.range,
      printable(line.name, 30),
      line.country ?? "",
      line.crawler === null ? "nobody" : `${line.crawler}${line.inherited ? " (inherited)" : ""}`,
      line.crawler === null ? "" : rttText(line.rttMs),
    ]);
  const more = list.more || list.subnets.length > 30 ? ["and more; --json lists up to 100"] : [];
  return [
    formatTable(
      [{ title }, { title: "Name" }, { title: "" }, { title: "Crawler" }, { title: "RTT", align: "right" }],
      rows,
    ),
    ...more,
  ];
}

function nearLines(answer: WhoAnswer): string[] {
  if (answer.nearMatches.length === 0) return [];
  const names = answer.nearMatches.map(
    (match) => `  ${match.name}${match.handle ? ` (${match.handle})` : ""}, ${match.type}`,
  );
  return [answer.found ? "Similar names" : "Did you mean", ...names.map((name) => printable(name))];
}

// The parts of a split leaf, as a table for people.

function finerLines(parts: readonly FinerReport[]): string[] {
  if (parts.length === 0) return [];
  const rows = parts.map((part) => [
    part.range ?? "",
    part.crawler.name,
    rttText(part.rttMs),
    rttText(part.subnetRttMs),
  ]);
  return [
    formatTable(
      [
        { title: "Part" },
        { title: "Crawler" },
        { title: "RTT", align: "right" },
        { title: "From the subnet's crawler", align: "right" },
      ],
      rows,
    ),
  ];
}
