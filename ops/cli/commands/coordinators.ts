/** `nearcrawl coordinators`: who is above and below this coordinator, what waits for each; invite and remove children. */
import { Command } from "commander";
import { readCoordinatorPlace } from "#coordinator/crawlers/coordinator-presence-store";
import type { Coordinators, RelatedCoordinator } from "#coordinator/federation/exchange-ports";
import {
  childInvited,
  childRemoved,
  inviteChild,
  invitedSettings,
  inviteFaultWords,
  linkWords,
  ownsWords,
  parentAwayWords,
  standingWords,
} from "#coordinator/federation/page";
import { createCoordinatorStore } from "#coordinator/federation/related-store";
import { randomSecrets } from "#coordinator/web/secrets";
import { howMany } from "#core/format";
import type { Database } from "#db/server-database";
import { commandActor, recordCommand } from "../audit-command-change.ts";
import { commandContext } from "../command-context.ts";
import { type ConfirmOptions, confirmedByTyping, type Deed, yesOption } from "../confirm-by-typing.ts";
import { exitCodes } from "../exit-codes.ts";
import { checkedName, printWatched, type WatchedOptions, withWatch } from "../fleet/watched.ts";
import { formatTable, printAnswer, printable } from "../output.ts";
import { type DatabaseOptions, readDatabase, withDatabaseOptions } from "../read-database.ts";

export function coordinatorsCommand(): Command {
  const command = new Command("coordinators")
    .description(
      "coordinators above and below this one: who owns which domains or address blocks, and what waits",
    )
    .addHelpText(
      "after",
      '\nA child is a coordinator whose settings name a parent: {"parent": {"url", "key", "owns": [".gr"]}}. It sends up what it does not own, and gets what it owns.\nExit codes: 0 done, 1 failed, 2 wrong usage, or the name is taken, 3 there is no child of that name.\n\nExamples:\n  nearcrawl coordinators list\n  nearcrawl coordinators invite athens\n  nearcrawl coordinators remove athens',
    );
  command.addCommand(
    withWatch(withDatabaseOptions(new Command("list")))
      .description("the parent and the children: when each was last seen, and what waits for it")
      .action(async (options: WatchedOptions) => {
        const read = async ({ pool }: Database) => await createCoordinatorStore(pool).list(new Date());
        await printWatched(options, read, (answer) => coordinatorsText(answer, new Date()));
      }),
  );
  command.addCommand(
    withDatabaseOptions(new Command("invite"))
      .argument("<name>", "the child's name here", checkedName)
      .description("create a child's key and print it once, as lines for its settings")
      .action(async (name: string, options: DatabaseOptions) => await invite(name, options)),
  );
  command.addCommand(
    withDatabaseOptions(new Command("remove"))
      .argument("<name>", "the child")
      .description("revoke its key; URLs that wait for it are rerouted")
      .addOption(yesOption())
      .action(async (name: string, options: DatabaseOptions & ConfirmOptions) => {
        if (await confirmedByTyping(options, async () => await removal(name, options)))
          await remove(name, options);
      }),
  );
  return command;
}

async function invite(name: string, options: DatabaseOptions): Promise<void> {
  const invited = await readDatabase(commandContext(options), async ({ pool }) => {
    const ports = {
      coordinators: createCoordinatorStore(pool),
      secrets: randomSecrets,
      place: async () => await readCoordinatorPlace(pool),
    };
    const made = await inviteChild(name, ports, { createdBy: commandActor(), now: new Date() });
    if (typeof made !== "string") await recordCommand(pool, childInvited(made));
    return made;
  });
  if (typeof invited !== "string") {
    const text = `${name} may join; these lines for its settings are shown only once (owns: its domains, or its address blocks):\n${invitedSettings(invited)}`;
    return printAnswer(options, invited, text);
  }
  process.stderr.write(`nearcrawl: ${inviteFaultWords(name)[invited]}\n`);
  process.exitCode = exitCodes.usage;
}

async function removal(name: string, options: DatabaseOptions): Promise<Deed | null> {
  const { children } = await readDatabase(
    commandContext(options),
    async ({ pool }) => await createCoordinatorStore(pool).list(new Date()),
  );
  const child = children.find((one) => one.name === name);
  if (child === undefined) return null;
  const follows = `${howMany(child.waiting, "URL")} wait for ${name} and are rerouted; its key stops working. nearcrawl coordinators invite ${name} takes it back.`;
  return { follows, typed: name, asked: "its name" };
}

async function remove(name: string, options: DatabaseOptions): Promise<void> {
  const removed = await readDatabase(commandContext(options), async ({ pool }) => {
    const isGone = await createCoordinatorStore(pool).remove(name);
    if (isGone) await recordCommand(pool, childRemoved(name));
    return isGone;
  });
  if (removed) return printAnswer(options, { name, removed }, childRemoved(name).words);
  process.stderr.write(`nearcrawl: there is no child "${name.slice(0, 100)}": nearcrawl coordinators list\n`);
  process.exitCode = exitCodes.notFound;
}

// The parent and the children of a coordinator, for people at a terminal.

export function coordinatorsText(coordinators: Coordinators, now: Date): string {
  const { parent, children } = coordinators;
  const away = parentAwayWords(parent);
  const rows = [
    ...(parent === null ? [] : [relatedRow({ ...parent, owns: ["everything else"] }, "parent", now)]),
    ...children.map((child) => relatedRow(child, "child", now)),
  ];
  const lines = [standingWords(coordinators), ...(away === null ? [] : [away])].map((line) =>
    printable(line, 1000),
  );
  return rows.length === 0 ? lines.join("\n") : `${lines.join("\n")}\n\n${relatedTable(rows)}`;
}

function relatedRow(one: RelatedCoordinator, kind: string, now: Date): string[] {
  const counts = [one.waiting, one.urlsSent, one.urlsReceived, one.urlsDropped].map((count) =>
    count.toLocaleString("en-GB"),
  );
  return [
    printable(one.name, 60),
    kind,
    printable(ownsWords(one), 50),
    printable(linkWords(one, now), 90),
    ...counts,
  ];
}

function relatedTable(rows: readonly string[][]): string {
  const left = ["coordinator", "", "owns", "state"].map((title) => ({ title }));
  const right = ["waiting", "sent", "received", "given up"].map((title) => ({
    title,
    align: "right" as const,
  }));
  return formatTable([...left, ...right], rows);
}
