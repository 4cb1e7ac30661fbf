/** `nearcrawl opt-outs`: sites and networks that the fleet leaves alone, and who asked for it. */
import { Command } from "commander";
import { confirmationName, confirmationText } from "#coordinator/opt-outs/honour";
import {
  type OptOut,
  type OptOutStore,
  type OptOutTarget,
  readTarget,
  wideWords,
} from "#coordinator/opt-outs/opt-out";
import { createOptOutStore } from "#coordinator/opt-outs/store";
import type { Change } from "#core/audit";
import { UsageError } from "#core/errors";
import { howMany } from "#core/format";
import { recordCommand } from "../audit-command-change.ts";
import { commandContext } from "../command-context.ts";
import { exitCodes } from "../exit-codes.ts";
import { formatTable, printAnswer, printable } from "../output.ts";
import { type DatabaseOptions, readSlices, tellPartial, withDatabaseOptions } from "../read-database.ts";

interface OptOutsOptions extends DatabaseOptions {
  readonly all?: boolean;
  readonly words?: string;
  readonly unconfirmed?: boolean;
}

const mostListed = 500;

export function optOutsCommand(): Command {
  const command = new Command("opt-outs")
    .description("sites and networks that no crawler sends requests to: list, add, confirm, lift")
    .addHelpText(
      "after",
      "\nA running coordinator honours a change at once: it assigns nothing more. Crawlers with protocol version 3 stop within a minute; older ones cannot be stopped, and finish the slice of pages that they have. Exit codes: 0 done, 1 failed, 2 wrong usage, 3 there is no such opt-out.\n\nExamples:\n  nearcrawl opt-outs list\n  nearcrawl opt-outs add www.example.org --words 'by letter of 3 March'\n  nearcrawl opt-outs add 192.0.2.0/24\n  nearcrawl opt-outs confirm 17\n  nearcrawl opt-outs lift www.example.org --words 'the owner did not request it'",
    );
  command.addCommand(
    withDatabaseOptions(new Command("list"))
      .description(
        "what has opted out, by whom, since when, and how much of it is in the frontier and the index",
      )
      .option("--all", "also what was lifted or has lapsed")
      .action(async (options: OptOutsOptions) => {
        const list = await withStore(options, (store) =>
          store.list({ open: !options.all, most: mostListed }),
        );
        printAnswer(options, list, optOutsText(list));
      }),
  );
  command.addCommand(
    withDatabaseOptions(new Command("add"))
      .argument("<target>", "a site (with everything below it) or a network")
      .option("--words <text>", "why, for the record", "")
      .option("--unconfirmed", "it lapses unless somebody confirms it")
      .description("opt a site or a network out, permanently; its pages are deleted from the index")
      .action(async (target: string, options: OptOutsOptions) => {
        await answer(options, { named: target, action: "opted-out" }, (store) =>
          store.request(
            {
              target: targetOf(target),
              source: "operator",
              words: options.words ?? "",
              replyTo: null,
              requester: null,
              confirmed: options.unconfirmed !== true,
            },
            new Date(),
          ),
        );
      }),
  );
  command.addCommand(
    withDatabaseOptions(new Command("confirm"))
      .argument("<number-or-target>", "as listed")
      .description("confirm an opt-out: it becomes permanent, and its pages are deleted from the index")
      .action(async (named: string, options: OptOutsOptions) => {
        await answer(options, { named, action: "opt-out-confirmed" }, async (store) => {
          const optOutId = await numberOf(named, store);
          return optOutId === null ? null : await store.confirm(optOutId, "operator", new Date());
        });
      }),
  );
  command.addCommand(
    withDatabaseOptions(new Command("lift"))
      .argument("<number-or-target>", "as listed")
      .option("--words <text>", "why, for the record", "")
      .description("lift an opt-out; crawling resumes after a quarter of an hour")
      .action(async (named: string, options: OptOutsOptions) => {
        await answer(options, { named, action: "opt-out-lifted" }, async (store) => {
          const optOutId = await numberOf(named, store);
          return optOutId === null ? null : await store.lift(optOutId, options.words ?? "", new Date());
        });
      }),
  );
  return command;
}

async function withStore<T>(options: OptOutsOptions, work: (store: OptOutStore) => Promise<T>): Promise<T> {
  return await readSlices(commandContext(options), async (slices) => {
    tellPartial(slices);
    return await work(createOptOutStore(slices));
  });
}

async function answer(
  options: OptOutsOptions,
  { named, action }: { readonly named: string; readonly action: keyof typeof changeWords },
  work: (store: OptOutStore) => Promise<OptOut | null>,
): Promise<void> {
  const optOut = await readSlices(commandContext(options), async (slices, { pool }) => {
    const changed = await work(createOptOutStore(slices));
    if (changed !== null) await recordCommand(pool, changeOf(changed, action));
    return changed;
  });
  if (optOut !== null) {
    printAnswer(options, optOut, optOutText(optOut));
    const wide = action === "opt-out-lifted" ? null : wideWords(optOut.target);
    if (wide !== null) process.stderr.write(`nearcrawl: warning: ${wide}\n`);
    return;
  }
  process.stderr.write(`nearcrawl: "${named.slice(0, 100)}" has no open opt-out: nearcrawl opt-outs list\n`);
  process.exitCode = exitCodes.notFound;
}

const changeWords = {
  "opted-out": "is opted out",
  "opt-out-confirmed": "is opted out permanently, and its pages are deleted from the index",
  "opt-out-lifted": "may be crawled again, after a quarter of an hour",
} as const;

function changeOf(
  { optOutId, target, state, hosts, pages }: OptOut,
  action: keyof typeof changeWords,
): Change {
  const words = `${target} ${changeWords[action]}.`;
  return { action, target, words, after: { optOutId, state, hosts, pages } };
}

async function numberOf(named: string, store: OptOutStore): Promise<number | null> {
  if (/^\d{1,9}$/.test(named)) return Number(named);
  return (await store.find(targetOf(named)))?.optOutId ?? null;
}

function targetOf(text: string): OptOutTarget {
  const target = readTarget(text, "networks");
  if (typeof target === "string") throw new UsageError(target);
  return target;
}

// Opt-outs for people: a table with what needs a look first, or one of them in sentences.

/** So many unconfirmed ones on one day, or more, look like a flood. */
const floodPerDay = 50;

const dayMs = 86_400_000;

export function optOutsText(list: readonly OptOut[], now = new Date()): string {
  if (list.length === 0) return "no opt-outs";
  const table = formatTable(
    [
      { title: "#", align: "right" },
      { title: "what" },
      { title: "state" },
      { title: "since" },
      { title: "until" },
      { title: "hosts", align: "right" },
      { title: "pages", align: "right" },
      { title: "from" },
      { title: "" },
    ],
    list.map((one) => [
      String(one.optOutId),
      printable(one.target, 60),
      one.state,
      day(one.createdAt),
      one.endedAt !== null ? day(one.endedAt) : one.lapsesAt === null ? "" : day(one.lapsesAt),
      String(one.hosts),
      String(one.pages),
      one.requester ?? one.source,
      printable(
        [one.replyTo ?? "", one.words, one.endingWords].filter((text) => text !== "").join(" · "),
        60,
      ),
    ]),
  );
  return [table, ...remarks(list, now)].join("\n");
}

export function optOutText(optOut: OptOut): string {
  const { optOutId, target, state, hosts, pages, lapsesAt } = optOut;
  const covers = `${howMany(hosts, "host")} of the frontier and ${howMany(pages, "page")} of the index`;
  const named = `opt-out ${optOutId} of ${target}`;
  switch (state) {
    case "confirmed":
      return `${named} is permanent: ${covers} are covered, and the pages are deleted`;
    case "unconfirmed":
      return `${named} holds until ${lapsesAt === null ? "it is lifted" : day(lapsesAt)}: ${covers} are covered; ${howToConfirm(optOut)}`;
    case "waiting":
      return `${named} waits: it takes effect when it is confirmed; ${howToConfirm(optOut)}`;
    default:
      return `${named} is ${state}: what it covered is crawled again`;
  }
}

function howToConfirm({ optOutId, target, kind, token }: OptOut): string {
  const byHand = `nearcrawl opt-outs confirm ${optOutId}`;
  return kind === "network"
    ? `confirm it by ${byHand}`
    : `the site confirms it by the DNS record ${confirmationName(target)} TXT "${confirmationText(token)}", or you by ${byHand}`;
}

function remarks(list: readonly OptOut[], now: Date): string[] {
  const waiting = list.filter(({ state }) => state === "waiting").length;
  const today = list.filter(
    ({ source, createdAt }) => source === "form" && now.getTime() - createdAt.getTime() < dayMs,
  );
  const addresses = new Set(today.map(({ requester }) => requester)).size;
  return [
    ...(waiting > 0
      ? [`${waiting} wait for confirmation: review them, then nearcrawl opt-outs confirm or lift`]
      : []),
    ...(today.length >= floodPerDay
      ? [
          `${today.length} came by the form within a day, from ${addresses === 1 ? "one address" : `${addresses} addresses`}: this may be a flood`,
        ]
      : []),
  ];
}

const day = (date: Date) => date.toISOString().slice(0, 10);
