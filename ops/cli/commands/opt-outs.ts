/** `nearcrawl opt-outs`: pages, sites and networks that the fleet leaves alone, and who asked for it; and pages that are erased. */
import { Command, Option } from "commander";
import {
  changeOfErasure,
  confirmationName,
  confirmationText,
  erasePageOf,
} from "#coordinator/opt-outs/honour";
import { createOptOutMarks } from "#coordinator/opt-outs/mark-writes";
import {
  isSaidNumber,
  liftedWords,
  type OptOut,
  type OptOutPreview,
  type OptOutScope,
  type OptOutTarget,
  optOutScopes,
  previewWords,
  readOptOut,
  scopeOf,
  scopeWords,
  stateWords,
  targetText,
} from "#coordinator/opt-outs/opt-out";
import { createOptOutStore, type OptOutStore } from "#coordinator/opt-outs/store";
import type { Change } from "#core/audit";
import { UsageError } from "#core/errors";
import { howMany } from "#core/format";
import { recordCommand } from "../audit-command-change.ts";
import { boundedInteger } from "../bounded-number.ts";
import { commandContext } from "../command-context.ts";
import { type ConfirmOptions, confirmedByTyping, yesOption } from "../confirm-by-typing.ts";
import { exitCodes } from "../exit-codes.ts";
import { formatTable, printAnswer, printable } from "../output.ts";
import { type DatabaseOptions, readDatabase, withDatabaseOptions } from "../read-database.ts";

interface OptOutsOptions extends DatabaseOptions, Pick<ConfirmOptions, "yes"> {
  readonly all?: boolean;
  readonly scope?: OptOutScope;
  readonly yesRemove?: number;
  readonly words?: string;
  readonly unconfirmed?: boolean;
}

const mostListed = 500;

export function optOutsCommand(): Command {
  const command = new Command("opt-outs")
    .description(
      "pages, sites and networks that no crawler sends requests to: list, add, confirm, lift, erase",
    )
    .addHelpText(
      "after",
      "\nA running coordinator honours a change at once: it assigns nothing more. Crawlers with protocol version 3 (6 for a part of a site) stop within a minute; older ones cannot be stopped, and finish the slice of pages that they have.\n\nWhat opts out is its scope, which the target says: a URL is that page alone, in all its spellings, by http and https; a URL with /* at its end is that page with what is below it, by whole path segments; https://HOST/* is one host; a name, or a URL of a front page, is a site with everything below its name; and a range is a network. --scope says otherwise. Much (more than two hosts or 100 pages, a public suffix, a network larger than a /16 or an IPv6 /29) has to be confirmed: on a terminal by typing how many pages go, elsewhere by --yes-remove and that number; a tenth off counts as the same, since pages come and go.\n\nExit codes: 0 done, 1 failed, 2 wrong usage or not confirmed, 3 there is no such opt-out.\n\nExamples:\n  nearcrawl opt-outs list\n  nearcrawl opt-outs preview https://www.example.org/members/*\n  nearcrawl opt-outs add https://www.example.org/members/jane\n  nearcrawl opt-outs add www.example.org --words 'by letter of 3 March'\n  nearcrawl opt-outs add 192.0.2.0/24 --yes-remove 1204\n  nearcrawl opt-outs erase https://www.example.org/members/jane\n  nearcrawl opt-outs confirm 17\n  nearcrawl opt-outs lift www.example.org --words 'the owner did not request it'",
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
      .argument("<target>", "a URL, a part of a site, a site or a network")
      .addOption(scopeOption())
      .option("--words <text>", "why, for the record", "")
      .option("--unconfirmed", "its pages are hidden, and it lapses unless somebody confirms it")
      .addOption(yesRemoveOption())
      .description(
        "opt a page, a part of a site, a site or a network out, permanently; its pages are deleted from the index",
      )
      .action(async (text: string, options: OptOutsOptions) => {
        const target = targetOf(text, options.scope);
        await answer(options, { named: text, action: "opted-out", guarded: async () => target }, (store) =>
          store.request(
            {
              target,
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
    withDatabaseOptions(new Command("preview"))
      .argument("<target>", "as for add")
      .addOption(scopeOption())
      .description("what an opt-out would cover: hosts, pages, URLs and how many of them are due")
      .action(async (text: string, options: OptOutsOptions) => {
        const target = targetOf(text, options.scope);
        const preview = (await withStore(options, (store) => store.preview(target, new Date())))!;
        const named = { target: targetText(target), scope: scopeOf(target) };
        const wide =
          preview.wide === null ? "" : `\n${preview.wide}: adding it takes --yes-remove ${preview.pages}`;
        const { known } = preview;
        const already =
          known === null ? "" : `\nit has opted out already: number ${known.optOutId}, ${stateWords(known)}`;
        const words = `the ${scopeWords[named.scope]} ${named.target}: ${previewWords(preview)}${wide}${already}`;
        printAnswer(options, { ...named, ...preview }, words);
      }),
  );
  command.addCommand(
    withDatabaseOptions(new Command("erase"))
      .argument("<url>", "of the page")
      .option("--words <text>", "why, for the record", "")
      .addOption(yesOption())
      .description(
        "erase what is kept of one page from database, index and exports, and opt its URL out; the audit log says what went where",
      )
      .action(erase),
  );
  command.addCommand(
    withDatabaseOptions(new Command("confirm"))
      .argument("<number-or-target>", "as listed")
      .addOption(yesRemoveOption())
      .description("confirm an opt-out: it becomes permanent, and its pages are deleted from the index")
      .action(async (named: string, options: OptOutsOptions) => {
        const guarded = (store: OptOutStore) => numberOf(named, store);
        await answer(options, { named, action: "opt-out-confirmed", guarded }, async (store) => {
          const optOutId = await numberOf(named, store);
          return optOutId === null ? null : await store.confirm(optOutId, "operator", new Date());
        });
      }),
  );
  command.addCommand(
    withDatabaseOptions(new Command("lift"))
      .argument("<number-or-target>", "as listed")
      .option("--words <text>", "why, for the record", "")
      .description(
        "lift an opt-out; crawling resumes after a quarter of an hour, and its URLs come due within six hours",
      )
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
  return await readDatabase(commandContext(options), async ({ pool }) => {
    return await work(createOptOutStore(pool));
  });
}

const scopeOption = () =>
  new Option("--scope <scope>", "how much of it, where the target does not say").choices(optOutScopes);

const yesRemoveOption = () =>
  new Option("--yes-remove <n>", "so many pages are meant to go, where much does").argParser(
    boundedInteger(0, 2_147_483_647),
  );

async function answer(
  options: OptOutsOptions,
  asked: {
    readonly named: string;
    readonly action: keyof typeof changeWords;
    /** What is to go: nothing is done unless that is meant. */
    readonly guarded?: (store: OptOutStore) => Promise<OptOutTarget | number | null>;
  },
  work: (store: OptOutStore) => Promise<OptOut | null>,
): Promise<void> {
  const { named, action, guarded } = asked;
  const optOut = await readDatabase(commandContext(options), async ({ pool }) => {
    const store = createOptOutStore(pool);
    const target = (await guarded?.(store)) ?? null;
    const preview = target === null ? null : await store.preview(target, new Date());
    if (preview !== null && !(await isMeant(options, named, preview))) return "not-meant";
    const changed = await work(store);
    if (changed === null) return null;
    const { hosts, urls, pages } = preview ?? changed;
    const counted = { ...changed, hosts, urls, pages };
    await recordCommand(pool, changeOf(counted, action));
    return counted;
  });
  if (optOut === "not-meant") return;
  if (optOut !== null) return printAnswer(options, optOut, optOutText(optOut));
  process.stderr.write(`nearcrawl: "${named.slice(0, 100)}" has no open opt-out: nearcrawl opt-outs list\n`);
  process.exitCode = exitCodes.notFound;
}

/** False: not confirmed on a terminal. Throws a UsageError where much goes, nobody can be asked, and its number was not said. */
async function isMeant(options: OptOutsOptions, named: string, preview: OptOutPreview): Promise<boolean> {
  const { wide, pages } = preview;
  const { yesRemove } = options;
  if (yesRemove !== undefined ? isSaidNumber(yesRemove, pages) : wide === null) return true;
  const follows = `${wide ?? named}: ${previewWords(preview)}`;
  if (yesRemove !== undefined || options.json === true || process.stdin.isTTY !== true)
    throw new UsageError(`${follows}. Nothing was changed; if that is meant, say --yes-remove ${pages}`);
  const asked = `how many pages go (${pages})`;
  return await confirmedByTyping({}, async () => ({ follows, typed: String(pages), asked }));
}

async function erase(url: string, options: OptOutsOptions): Promise<void> {
  const follows = `What is kept of ${printable(url, 200)} goes, and its URL is opted out. This cannot be undone.`;
  if (!(await confirmedByTyping(options, async () => ({ follows, typed: "erase", asked: "“erase”" }))))
    return;
  await readDatabase(commandContext(options), async ({ pool }) => {
    const ports = { optOuts: createOptOutStore(pool), marks: createOptOutMarks(pool) };
    const erased = await erasePageOf(ports, { url, words: options.words ?? "" }, new Date());
    if (typeof erased === "string") throw new UsageError(erased);
    const change = changeOfErasure(erased);
    await recordCommand(pool, change);
    printAnswer(options, erased, `${change.words}\nIts URL is opted out (number ${erased.optOutId}).`);
  });
}

const changeWords = {
  "opted-out": "is opted out",
  "opt-out-confirmed": "is opted out permanently, and its pages are deleted from the index",
  "opt-out-lifted": "may be crawled again, after a quarter of an hour",
} as const;

function changeOf(optOut: OptOut, action: keyof typeof changeWords): Change {
  const { optOutId, target, scope, state, hosts, urls, pages } = optOut;
  const lost = action === "opt-out-lifted" ? ` ${liftedWords(optOut)}` : "";
  const words = `${target} ${changeWords[action]}.${lost}`;
  return { action, target, words, after: { optOutId, scope, state, hosts, urls, pages } };
}

async function numberOf(named: string, store: OptOutStore): Promise<number | null> {
  if (/^\d{1,9}$/.test(named)) return Number(named);
  return (await store.find(targetOf(named)))?.optOutId ?? null;
}

function targetOf(text: string, scope: OptOutScope | null = null): OptOutTarget {
  const target = readOptOut(text, "networks", scope);
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
      { title: "URLs", align: "right" },
      { title: "pages", align: "right" },
      { title: "from" },
      { title: "" },
    ],
    list.map((one) => [
      String(one.optOutId),
      printable(one.target, 60),
      stateWords(one),
      day(one.createdAt),
      one.endedAt !== null ? day(one.endedAt) : one.lapsesAt === null ? "" : day(one.lapsesAt),
      String(one.hosts),
      String(one.urls),
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
  const { optOutId, target, scope, state, hosts, urls, pages, lapsesAt } = optOut;
  const covers = `${howMany(hosts, "host")} and ${howMany(urls, "URL")} of the frontier and ${howMany(pages, "page")} of the index`;
  const named = `opt-out ${optOutId} of the ${scopeWords[scope]} ${target}`;
  switch (state) {
    case "confirmed":
      return `${named} is permanent: ${covers} are covered, and the pages are deleted`;
    case "unconfirmed":
      return `${named} holds until ${lapsesAt === null ? "it is lifted" : day(lapsesAt)} (${stateWords(optOut)}): ${covers} are covered; ${howToConfirm(optOut)}`;
    case "waiting":
      return `${named} waits: it takes effect when it is proven; ${howToConfirm(optOut)}`;
    default:
      return `${named} is ${state}: what it covered is crawled again, after a quarter of an hour and within six hours. ${liftedWords(optOut)} The form is not believed for it again without proof`;
  }
}

function howToConfirm({ optOutId, site, token }: OptOut): string {
  const byHand = `nearcrawl opt-outs confirm ${optOutId}`;
  return site === null
    ? `confirm it by ${byHand}`
    : `the site proves it by the DNS record ${confirmationName(site)} TXT "${confirmationText(token)}", or you confirm it by ${byHand}`;
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
