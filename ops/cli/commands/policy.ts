/** `nearcrawl policy`: what decides how the fleet behaves: shown, previewed, changed and taken back while it runs. */
import { Command } from "commander";
import {
  isPolicyName,
  type PolicyValue,
  policyOf,
  rangeText,
  unknownPolicy,
  valueFromText,
  valueText,
} from "#coordinator/settings/catalogue";
import {
  type AskedPolicies,
  type ChangeFault,
  changeWords,
  type PolicyStore,
  savePolicies,
  type WeighedChange,
  weighPolicies,
} from "#coordinator/settings/change";
import { differenceText, figureText } from "#coordinator/settings/page";
import { previewPolicies } from "#coordinator/settings/preview/preview";
import type { PolicyEffect } from "#coordinator/settings/preview/types";
import type { PolicyName } from "#coordinator/settings/schema";
import { createPolicyStore } from "#coordinator/settings/settings-store";
import {
  auditedChange,
  type PoliciesAnswer,
  type PreviewAnswer,
  policiesAnswer,
  previewAnswer,
  type ShownPolicy,
  type ShownVersion,
  searchedPolicies,
} from "#coordinator/settings/settings-view";
import { previewPorts } from "#coordinator/settings/start";
import { UsageError } from "#core/errors";
import { silentLog } from "#core/log";
import type { Database } from "#db/server-database";
import { commandActor, recordCommand } from "../audit-command-change.ts";
import { boundedInteger } from "../bounded-number.ts";
import { commandContext } from "../command-context.ts";
import { exitCodes } from "../exit-codes.ts";
import { formatTable, printAnswer, printable } from "../output.ts";
import { type DatabaseOptions, readDatabase, withDatabaseOptions } from "../read-database.ts";

interface ChangeOptions extends DatabaseOptions {
  readonly why?: string;
  readonly basedOn?: number;
}

interface ShowOptions extends DatabaseOptions {
  readonly basic?: boolean;
  readonly changed?: boolean;
  readonly search?: string;
}

interface HistoryOptions extends DatabaseOptions {
  readonly limit: number;
  readonly takeBack?: number;
  readonly why?: string;
}

const mostVersion = 2 ** 31 - 1;
const mostWhy = 300;

export function policyCommand(): Command {
  const command = new Command("policy")
    .description(
      "settings of the fleet's behaviour; a change takes effect at once in every running coordinator",
    )
    .addHelpText(
      "after",
      "\nExit codes: 0 done, 1 failed, 2 wrong usage or an invalid value, 3 there is no such policy or version.\n\nExamples:\n  nearcrawl policy show --basic\n  nearcrawl policy show --search probe\n  nearcrawl policy show delegation.lambdaMs\n  nearcrawl policy preview delegation.lambdaMs=0.5\n  nearcrawl policy set delegation.lambdaMs=0.5 --why 'news sites'\n  nearcrawl policy reset delegation.lambdaMs\n  nearcrawl policy history --take-back 3",
    );
  command.addCommand(
    withDatabaseOptions(new Command("show"))
      .argument("[name]", "one policy, with its help")
      .description("every policy: what is in force, the default, and who changed it")
      .option("--basic", "only the dozen that are usually changed")
      .option("--changed", "those that differ from the default")
      .option("--search <words>", "those with these words in name, title, help or group")
      .action(async (name: string | undefined, options: ShowOptions) => await show(name, options)),
  );
  command.addCommand(
    withDatabaseOptions(new Command("preview"))
      .argument("<name=value...>", "such as delegation.lambdaMs=0.5; name= alone: back to the file's value")
      .description("preview the effect of a change, computed from the crawl so far; nothing is saved")
      .action(async (given: string[], options: DatabaseOptions) => await preview(given, options)),
  );
  command.addCommand(
    withChangeOptions(new Command("set"))
      .argument("<name=value...>", "such as delegation.lambdaMs=0.5 probe.tries=4")
      .description("change policies; all of them or none")
      .action(async (given: string[], options: ChangeOptions) => {
        await change({ values: valuesIn(given), takeBack: null }, options);
      }),
  );
  command.addCommand(
    withChangeOptions(new Command("reset"))
      .argument("<name...>", "such as delegation.lambdaMs")
      .description("back to the value of the coordinator's file, or the default where it has none")
      .action(async (names: string[], options: ChangeOptions) => {
        const values = Object.fromEntries(names.map((name) => [name, null]));
        await change({ values, takeBack: null }, options);
      }),
  );
  command.addCommand(
    withDatabaseOptions(new Command("history"))
      .description("who changed what, when and why, the latest first; --take-back reverts one")
      .option("--limit <versions>", "how many are shown", boundedInteger(1, 1000), 20)
      .option("--take-back <version>", "revert what it changed", boundedInteger(1, mostVersion))
      .option("--why <words>", "with --take-back: for the history", whyOf)
      .action(async (options: HistoryOptions) => await history(options)),
  );
  return command;
}

function withChangeOptions(command: Command): Command {
  return withDatabaseOptions(command)
    .option("--why <words>", "for the history", whyOf)
    .option(
      "--based-on <version>",
      "refused when somebody has changed something since this version",
      boundedInteger(0, mostVersion),
    );
}

function whyOf(text: string): string {
  if (text.length > mostWhy) throw new UsageError(`--why: ${mostWhy} characters at most`);
  return text.trim();
}

async function withStore<T>(
  options: DatabaseOptions,
  work: (store: PolicyStore, database: Database) => Promise<T>,
): Promise<T> {
  return await readDatabase(
    commandContext(options),
    async (database) => await work(createPolicyStore(database.pool), database),
  );
}

async function show(name: string | undefined, options: ShowOptions): Promise<void> {
  const { basic: basicOnly = false, changed: changedOnly = false, search: text = "" } = options;
  const all = await withStore(options, async (store) => await policiesAnswer(store));
  const answer = searchedPolicies(all, { text, changedOnly, basicOnly });
  if (name === undefined) return printAnswer(options, answer, policiesText(answer));
  const policy = all.groups.flatMap(({ policies }) => policies).find((one) => one.name === name);
  if (policy !== undefined) return printAnswer(options, policy, policyText(policy));
  process.stderr.write(`nearcrawl: there is no policy "${name.slice(0, 60)}": nearcrawl policy show\n`);
  process.exitCode = exitCodes.notFound;
}

async function preview(given: readonly string[], options: DatabaseOptions): Promise<void> {
  const asked = { values: valuesIn(given), takeBack: null, basedOn: null };
  await readDatabase(commandContext(options), async ({ pool }) => {
    const weighed = await weighPolicies(asked, createPolicyStore(pool));
    if (weighed.type === "fault") return refuse(weighed);
    const effects = await previewPolicies(weighed.step, previewPorts(pool, silentLog));
    const answer = previewAnswer(weighed, effects);
    printAnswer(options, answer, previewText(answer));
  });
}

async function change(asked: Omit<AskedPolicies, "basedOn">, options: ChangeOptions): Promise<void> {
  await withStore(options, async (store, database) => {
    const weighed = await weighPolicies({ ...asked, basedOn: options.basedOn ?? null }, store);
    if (weighed.type === "fault") return refuse(weighed);
    await save(weighed, options, { store, database });
  });
}

async function save(
  weighed: WeighedChange,
  options: ChangeOptions,
  { store, database }: { readonly store: PolicyStore; readonly database: Database },
): Promise<void> {
  const words = options.why ?? "";
  const saved = await savePolicies(weighed, { name: commandActor(), words, now: new Date() }, store);
  if (typeof saved !== "number") return refuse(saved);
  await recordCommand(database.pool, auditedChange(weighed, words));
  const { changes } = previewAnswer(weighed, []);
  const text = `${changeWords(weighed).join("\n")}\nsaved as version ${saved}; running coordinators follow at once (nearcrawl policy history --take-back ${saved} reverts it)`;
  printAnswer(options, { version: saved, changes }, text);
}

async function history(options: HistoryOptions): Promise<void> {
  const { takeBack, limit } = options;
  if (takeBack !== undefined) return await change({ values: {}, takeBack }, options);
  const { history: versions } = await withStore(options, async (store) => await policiesAnswer(store, limit));
  printAnswer(options, versions, historyText(versions));
}

function refuse({ status, words }: ChangeFault): void {
  process.stderr.write(`nearcrawl: ${words}\n`);
  process.exitCode = status === 404 ? exitCodes.notFound : exitCodes.usage;
}

/** `name=value`; without a value, back to the file's. */
function valuesIn(given: readonly string[]): Record<string, PolicyValue | null> {
  return Object.fromEntries(
    given.map((one) => {
      const at = one.indexOf("=");
      if (at < 1) throw new UsageError(`${one}: write NAME=VALUE, such as delegation.lambdaMs=0.5`);
      const [name, text] = [one.slice(0, at), one.slice(at + 1)];
      if (!isPolicyName(name)) throw new UsageError(`${unknownPolicy(name)}: nearcrawl policy show`);
      return [name, text === "" ? null : valueFromText(name, text)];
    }),
  );
}

// Policies, their history, and what a change would come to, as text for a terminal.

const mostWords = 300;

function policiesText({ groups, version, ignored }: PoliciesAnswer): string {
  const rows = groups.flatMap(({ policies }) => policies).map(policyRow);
  const table = formatTable(
    [{ title: "policy" }, { title: "in force" }, { title: "default" }, { title: "changed by" }],
    rows,
  );
  const faults = ignored.map((fault) => `ignored: ${printable(fault, mostWords)}`);
  const changes = version === 0 ? "nothing has been changed" : `version ${version}`;
  return [table, "", ...faults, `${changes} (nearcrawl policy show NAME says what one does)`].join("\n");
}

function policyRow({ name, value, default: usual, changedBy, changedAt }: ShownPolicy): string[] {
  const who = changedBy === null ? "" : `${printable(changedBy, 60)}, ${minute(changedAt!)}`;
  return [name, spoken(name, value), spoken(name, usual), who];
}

function policyText(policy: ShownPolicy): string {
  const { name, title, help, value, fileValue, origin, changedBy, changedAt } = policy;
  return [
    title,
    help,
    "",
    `in force    ${spoken(name, value)}`,
    `file        ${spoken(name, fileValue)}`,
    `default     ${spoken(name, policy.default)} (${origin})`,
    `may be      ${rangeText(policyOf(name as PolicyName))}`,
    `changed     ${changedBy === null ? "by nobody" : `by ${printable(changedBy, 60)}, ${minute(changedAt!)}`}`,
  ].join("\n");
}

function historyText(history: readonly ShownVersion[]): string {
  if (history.length === 0) return "no policy has been changed yet: nearcrawl policy set NAME=VALUE";
  return formatTable(
    [
      { title: "version", align: "right" },
      { title: "when (UTC)" },
      { title: "who" },
      { title: "what" },
      { title: "why" },
    ],
    history.map(({ version, changedAt, changedBy, words, takesBack, changes }) => [
      String(version),
      minute(changedAt),
      printable(changedBy, 60),
      changes
        .map(({ name, before, after }) => `${name}: ${spokenOr(name, before)} → ${spokenOr(name, after)}`)
        .join("; "),
      [takesBack === null ? "" : `reverts ${takesBack}`, printable(words, mostWords)]
        .filter((part) => part !== "")
        .join(": "),
    ]),
  );
}

function previewText({ changes, effects }: PreviewAnswer): string {
  const lines = changes.map(
    ({ name, before, after, toFile }) =>
      `${name}: ${spoken(name, before)} → ${spoken(name, after)}${toFile ? " (the file's value)" : ""}`,
  );
  return [...lines, ...effects.map(effectText), "\nnothing is saved: nearcrawl policy set …"].join("\n");
}

function effectText({ title, figures, basis, limits }: PolicyEffect): string {
  const table = formatTable(
    [
      { title },
      { title: "now", align: "right" },
      { title: "then", align: "right" },
      { title: "difference", align: "right" },
    ],
    figures.map(({ words, unit, before, after }) => [
      words,
      figureText(before, unit),
      figureText(after, unit),
      differenceText(before === null || after === null ? null : after - before, unit),
    ]),
  );
  return ["", figures.length === 0 ? title : table, basis, ...limits.map((limit) => `- ${limit}`)].join("\n");
}

const spoken = (name: string, value: PolicyValue) => valueText(name as PolicyName, value);

const spokenOr = (name: PolicyName, value: PolicyValue | null) =>
  value === null ? "the file's value" : valueText(name, value);

const minute = (iso: string) => iso.slice(0, 16).replace("T", " ");
