/** `nearcrawl coordinators`: who is above and below this coordinator, what waits for each; invite and remove children. */
import { Command } from "commander";
import { readCoordinatorPlace } from "#coordinator/crawlers/coordinator-place-store";
import {
  childInvited,
  childRemoved,
  inviteChild,
  invitedSettings,
  inviteFaultWords,
} from "#coordinator/federation/page";
import { createCoordinatorStore } from "#coordinator/federation/related-store";
import { randomSecrets } from "#coordinator/web/secrets";
import { commandActor, recordCommand } from "../audit-command-change.ts";
import { commandContext, exitCodes } from "../command-context.ts";
import { coordinatorsText } from "../coordinators-text.ts";
import { type DatabaseOptions, withDatabaseOptions } from "../database-options.ts";
import { checkedName } from "../fleet/fleet-options.ts";
import { printWatched, type WatchedOptions, withWatch } from "../fleet/watched.ts";
import { printAnswer } from "../output.ts";
import { readDatabase } from "../read-database.ts";

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
      .description("the parent, the children, when each was last heard of, and what waits for it")
      .action(async (options: WatchedOptions) => {
        const read = async (pool: Parameters<typeof createCoordinatorStore>[0]) =>
          await createCoordinatorStore(pool).list(new Date());
        await printWatched(options, read, (answer) => coordinatorsText(answer, new Date()));
      }),
  );
  command.addCommand(
    withDatabaseOptions(new Command("invite"))
      .argument("<name>", "how this coordinator calls the child", checkedName)
      .description("make a child's key and print it this once, as the lines of its settings")
      .action(async (name: string, options: DatabaseOptions) => await invite(name, options)),
  );
  command.addCommand(
    withDatabaseOptions(new Command("remove"))
      .argument("<name>", "the child")
      .description("its key opens nothing any more; what waits for it goes where it belongs then")
      .action(async (name: string, options: DatabaseOptions) => await remove(name, options)),
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
    const text = `${name} may join; these lines of its settings are shown this once (owns: its domains, or its address blocks):\n${invitedSettings(invited)}`;
    return printAnswer(options, invited, text);
  }
  process.stderr.write(`nearcrawl: ${inviteFaultWords(name)[invited]}\n`);
  process.exitCode = exitCodes.usage;
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
