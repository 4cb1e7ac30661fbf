/** `nearcrawl fleet domain-sets`: which domains and languages a crawler may have; running coordinators follow at once. */
import { Command } from "commander";
import { createDomainSetStore, type DomainSetsOf } from "#coordinator/domain-sets/domain-set-store";
import { type GivenDomainSets, giveDomainSets, givenWords } from "#coordinator/domain-sets/give";
import { UsageError } from "#core/errors";
import { recordCommand } from "../audit-command-change.ts";
import { commandContext } from "../command-context.ts";
import { type DatabaseOptions, withDatabaseOptions } from "../database-options.ts";
import { printAnswer } from "../output.ts";
import { readDatabase } from "../read-database.ts";
import { checkedName, nobodyOfThatName } from "./fleet-options.ts";

interface DomainSetOptions extends DatabaseOptions {
  readonly clear?: boolean;
}

export function domainSetsCommand(): Command {
  return withDatabaseOptions(new Command("domain-sets"))
    .argument("<name>", "the crawler's name", checkedName)
    .argument("[set...]", 'one set each: .gr, "example.org not shop.example.org", ".gr lang:el"')
    .option("--clear", "hosts of every domain again")
    .description("which domains and languages a crawler may have: shown, or given anew")
    .addHelpText(
      "after",
      '\nA host must be in one of the sets, and in one of those that the crawler\'s partner names, if any; it is crawled by the nearest crawler that may have it. While no page of a host is known, every language may hold it.\nExit codes: 0 done, 1 failed, 2 wrong usage or sets that cannot be, 3 there is no crawler of that name.\n\nExamples:\n  nearcrawl fleet domain-sets athens\n  nearcrawl fleet domain-sets athens .gr .cy lang:el\n  nearcrawl fleet domain-sets boston "not .gr"\n  nearcrawl fleet domain-sets athens --clear',
    )
    .action(async (name: string, sets: readonly string[], options: DomainSetOptions) => {
      if (options.clear === true && sets.length > 0) {
        throw new UsageError("say which sets, or --clear: not both");
      }
      if (options.clear !== true && sets.length === 0) await show(name, options);
      else await give(name, sets, options);
    });
}

async function show(name: string, options: DomainSetOptions): Promise<void> {
  const found = await readDatabase(
    commandContext(options),
    async ({ pool }) => await createDomainSetStore(pool).of(name),
  );
  if (found === null) return nobodyOfThatName(name);
  printAnswer(options, found, textOf(found));
}

async function give(name: string, sets: readonly string[], options: DomainSetOptions): Promise<void> {
  const given = await readDatabase(commandContext(options), async ({ pool }): Promise<GivenDomainSets> => {
    const made = await giveDomainSets({ name, sets }, createDomainSetStore(pool));
    if (made.type !== "given") return made;
    const { before, operator: after } = made.changed;
    const change = { action: "crawler-domain-sets-given", target: name, words: givenWords(made.changed) };
    await recordCommand(pool, { ...change, before, after });
    return made;
  });
  if (given.type === "no-crawler") return nobodyOfThatName(name);
  if (given.type === "refused") throw new UsageError(given.reason);
  printAnswer(options, given.changed, givenWords(given.changed));
}

function textOf({ name, operator, partner }: DomainSetsOf): string {
  const lines = [
    `${name} may have ${operator.length === 0 ? "hosts of every domain" : `hosts in ${operator.join(" or ")}`}`,
    ...(partner.length === 0 ? [] : [`  its partner narrows that to ${partner.join(" or ")}`]),
  ];
  return lines.join("\n");
}
