/** `nearcrawl fleet trust`: whether a crawler is trusted, the evidence page by page, and the way back. */
import { Command } from "commander";
import { restoreTrust } from "#coordinator/trust/distrust-writes";
import {
  standingWords,
  type TrustEvidence,
  type TrustReport,
  unprovenWords,
} from "#coordinator/trust/judge-crawler";
import { type TrustLine, trustList, trustReport } from "#coordinator/trust/reads";
import { UsageError } from "#core/errors";
import { recordCommand } from "../audit-command-change.ts";
import { commandContext } from "../command-context.ts";
import { formatTable, printAnswer, printable } from "../output.ts";
import { type DatabaseOptions, readDatabase, withDatabaseOptions } from "../read-database.ts";
import { checkedName, nobodyOfThatName } from "./watched.ts";

export function trustCommand(): Command {
  return withDatabaseOptions(new Command("trust"))
    .argument("[name]", "the crawler's name; without it: all, one per line", checkedName)
    .description(
      "whether a crawler's pages and probe reports are trusted, with every page that counts against it",
    )
    .option(
      "--restore",
      "trust it again: the evidence against it no longer counts, and it starts as a newcomer",
    )
    .action(async (name: string | undefined, options: DatabaseOptions & { readonly restore?: boolean }) => {
      if (name === undefined) return await listTrust(options);
      const report = await readDatabase(commandContext(options), async ({ pool }) => {
        if (options.restore && (await restoreTrust(pool, name, new Date()))) {
          const words = `${name} is trusted again, and the evidence against it no longer counts.`;
          await recordCommand(pool, { action: "crawler-trust-restored", target: name, words });
        }
        return await trustReport(pool, name);
      });
      if (report === null) return nobodyOfThatName(name);
      printAnswer(options, report, trustText(report));
    });
}

async function listTrust(options: DatabaseOptions & { readonly restore?: boolean }): Promise<void> {
  if (options.restore)
    throw new UsageError("name the crawler to trust again: nearcrawl fleet trust NAME --restore");
  const crawlers = await readDatabase(commandContext(options), async ({ pool }) => {
    return await trustList(pool);
  });
  printAnswer(options, { crawlers }, trustListText(crawlers));
}

export function trustListText(crawlers: readonly TrustLine[]): string {
  if (crawlers.length === 0) return "there is no crawler yet: nearcrawl fleet invite --name NAME";
  return formatTable(
    [
      { title: "crawler" },
      { title: "standing" },
      ...["agree", "differ", "once", "score", "pages"].map((title) => ({ title, align: "right" as const })),
      { title: "" },
    ],
    crawlers.map(
      ({ crawler, standing, comparisons: { agreed, alone, once }, score, pages, since, words }) => [
        ...[crawler, standingWords[standing], String(agreed), String(alone), String(once)],
        ...[score.toFixed(1), String(pages)],
        since === null ? printable(words, 160) : printable(`since ${minute(since)}: ${words}`, 160),
      ],
    ),
  );
}

export function trustText(report: TrustReport): string {
  return [
    `${report.crawler}: ${standingWords[report.standing]}`,
    ...standingLines(report),
    comparisonLine(report),
    ...(report.connected < 3 ? [tooFew] : []),
    ...(report.evidence.length === 0 ? [] : ["", "Pages that count against it, the latest first:"]),
    ...report.evidence.flatMap(evidenceLines),
  ].join("\n");
}

const tooFew =
  "Fewer than three crawlers are connected: differences are recorded, but nobody can say which of two is right.";

function standingLines({
  crawler,
  distrusted,
  probesDoubted,
  restoredAt,
  standing,
  comparisons,
  score,
}: TrustReport): string[] {
  const back = `Once you know better: nearcrawl fleet trust ${crawler} --restore`;
  return [
    ...(distrusted === null
      ? []
      : [`Not trusted since ${minute(distrusted.since)}: ${printable(distrusted.words, 300)}.`]),
    ...(probesDoubted === null
      ? []
      : [
          `Its probe reports have not been trusted since ${minute(probesDoubted.since)}: ${printable(probesDoubted.words, 300)}.`,
        ]),
    ...(distrusted === null && probesDoubted === null ? [] : [back]),
    ...(standing === "unproven" ? [unprovenWords(comparisons)] : []),
    ...(standing === "watched"
      ? [`It stood alone recently (score ${score.toFixed(1)}), so more of its pages are compared.`]
      : []),
    ...(restoredAt === null ? [] : [`An operator restored it at ${minute(restoredAt)}.`]),
  ];
}

function comparisonLine({ pages, comparisons: { agreed, alone, once } }: TrustReport): string {
  const total = agreed + alone + once;
  return `Of ${pages} pages ${total} comparisons count: ${agreed} agree with another crawler's, ${alone} differ from everybody's each time, ${once} differed once.`;
}

function evidenceLines({ url, at, verdict, words, counts, why, opinions }: TrustEvidence): string[] {
  return [
    `  ${minute(at)}  ${printable(url, 200)}`,
    `    ${verdict === "alone" ? "differs each time" : "differed once"}: ${printable(words, 200)}`,
    `    ${counts ? "counts" : "does not count"}: ${why}`,
    ...opinions.map(
      (one) => `    ${minute(new Date(one.at))}  ${one.crawler} found ${printable(one.said, 100)}`,
    ),
  ];
}

const minute = (at: Date) => at.toISOString().slice(0, 16).replace("T", " ");
