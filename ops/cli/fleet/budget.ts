/** `nearcrawl fleet budget`: what operators grant a crawler a day; running coordinators keep to it at once. */
import { Command, InvalidArgumentError } from "commander";
import { grantBudget } from "#coordinator/crawlers/control-store";
import type { Budget, BudgetChange, ChangedBudget } from "#coordinator/crawlers/crawler";
import { fleetEntry } from "#coordinator/fleet/fleet-list-reads";
import { recordCommand } from "../audit-command-change.ts";
import { boundedInteger } from "../bounded-number.ts";
import { commandContext } from "../command-context.ts";
import { printAnswer } from "../output.ts";
import { type DatabaseOptions, readDatabase, withDatabaseOptions } from "../read-database.ts";
import { checkedName, nobodyOfThatName } from "./watched.ts";

interface BudgetOptions extends DatabaseOptions {
  readonly pagesPerDay?: number | typeof own;
  readonly bytesPerDay?: number | typeof own;
}

/** As the partner allows. */
const own = "own";

export function budgetCommand(): Command {
  return withDatabaseOptions(new Command("budget"))
    .argument("<name>", "the crawler's name", checkedName)
    .description("show or change what a crawler may fetch per day; takes effect at once")
    .option("--pages-per-day <pages>", "upper limit; own: whatever its partner allows", budget(1e9))
    .option("--bytes-per-day <bytes>", "upper limit; own: whatever its partner allows", budget(1e15))
    .addHelpText(
      "after",
      "\nNever more than its partner allows.\nExit codes: 0 done, 1 failed, 2 wrong usage, 3 there is no crawler of that name.\n\nExamples:\n  nearcrawl fleet budget athens\n  nearcrawl fleet budget athens --pages-per-day 50000 --bytes-per-day own",
    )
    .action(async (name: string, options: BudgetOptions) => {
      const { pagesPerDay, bytesPerDay } = options;
      const change: BudgetChange = {
        ...(pagesPerDay === undefined ? {} : { pagesPerDay: grantOf(pagesPerDay) }),
        ...(bytesPerDay === undefined ? {} : { bytesPerDay: grantOf(bytesPerDay) }),
      };
      if (Object.keys(change).length === 0) await show(name, options);
      else await grant(name, change, options);
    });
}

async function show(name: string, options: DatabaseOptions): Promise<void> {
  const entry = await readDatabase(
    commandContext(options),
    async ({ pool }) => await fleetEntry(pool, name, new Date()),
  );
  if (entry === null) return nobodyOfThatName(name);
  const { granted, partnerAllows, pagesPerDay, bytesPerDay, pagesToday, bytesToday } = entry;
  const answer = {
    name,
    granted,
    partnerAllows,
    inForce: { pagesPerDay, bytesPerDay },
    pagesToday,
    bytesToday,
  };
  const lines = [
    `${name} may fetch ${count(pagesPerDay)} pages and ${count(bytesPerDay)} bytes per day`,
    `  granted        ${budgetText(granted, "as its partner allows")}`,
    `  its partner    ${budgetText(partnerAllows, "has not said")}`,
    `  today          ${count(pagesToday)} pages, ${count(bytesToday)} bytes`,
  ];
  printAnswer(options, answer, lines.join("\n"));
}

async function grant(name: string, change: BudgetChange, options: DatabaseOptions): Promise<void> {
  const changed = await readDatabase(commandContext(options), async ({ pool }) => {
    const made = await grantBudget(pool, name, change);
    if (made === null) return null;
    const words = wordsOf(name, made);
    const { before, granted: after } = made;
    await recordCommand(pool, { action: "crawler-budget-granted", target: name, words, before, after });
    return made;
  });
  if (changed === null) return nobodyOfThatName(name);
  printAnswer(options, { name, ...changed }, wordsOf(name, changed));
}

function wordsOf(name: string, { granted, inForce }: ChangedBudget): string {
  return `${name} is granted ${budgetText(granted, "as its partner allows")}; with what its partner allows that is ${count(inForce.pagesPerDay)} pages and ${count(inForce.bytesPerDay)} bytes per day`;
}

function budgetText({ pagesPerDay, bytesPerDay }: Budget, none: string): string {
  if (pagesPerDay === null && bytesPerDay === null) return none;
  const of = (value: number | null, what: string) =>
    value === null ? `any ${what}` : `${count(value)} ${what}`;
  return `${of(pagesPerDay, "pages")}, ${of(bytesPerDay, "bytes")}`;
}

const grantOf = (given: number | typeof own): number | null => (given === own ? null : given);

function budget(most: number): (text: string) => number | typeof own {
  const integer = boundedInteger(0, most);
  return (text) => {
    if (text === own) return own;
    if (/^\d+$/.test(text)) return integer(text);
    throw new InvalidArgumentError(`a whole number from 0 to ${most}, or own, is expected`);
  };
}

const count = (value: number) => value.toLocaleString("en");
