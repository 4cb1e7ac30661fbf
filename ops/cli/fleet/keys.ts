/** `nearcrawl fleet rotate`, `revoke` and `kill`: crawlers' keys, while the crawlers run. */
import { Command } from "commander";
import { createCrawlerStore } from "#coordinator/crawlers/crawler-store";
import { createFleetKeys, defaultGraceHours } from "#coordinator/crawlers/identity-store";
import { killCrawler } from "#coordinator/fleet/crawler-routes";
import { fleetList } from "#coordinator/fleet/fleet-list-reads";
import { createFrontierStore } from "#coordinator/frontier/frontier-store";
import { UsageError } from "#core/errors";
import { howMany } from "#core/format";
import { recordCommand } from "../audit-command-change.ts";
import { boundedNumber } from "../bounded-number.ts";
import { commandContext } from "../command-context.ts";
import { type ConfirmOptions, confirmedByTyping, yesOption } from "../confirm-by-typing.ts";
import { exitCodes } from "../exit-codes.ts";
import { printAnswer } from "../output.ts";
import { type DatabaseOptions, readDatabase, withDatabaseOptions } from "../read-database.ts";
import { nobodyOfThatName } from "./watched.ts";

interface RotateOptions extends DatabaseOptions {
  readonly all?: boolean;
  readonly signingKey?: boolean;
  readonly graceHours: number;
}

export function rotateCommand(): Command {
  return withDatabaseOptions(new Command("rotate"))
    .argument("[name]", "the crawler's name")
    .description(
      "give a crawler a new key without touching its machine; an offline one gets it when it connects (keys are replaced automatically after 90 days)",
    )
    .option("--all", "every crawler that has an identity")
    .option(
      "--signing-key",
      "instead, replace the key that signs requests to sites: the crawler makes another, used once it is published (automatic after signingKeyDays)",
    )
    .option(
      "--grace-hours <hours>",
      "how long the old key stays valid once the new one has arrived",
      boundedNumber(0, 720),
      defaultGraceHours,
    )
    .action(async (name: string | undefined, options: RotateOptions) => await rotate(name, options));
}

async function rotate(name: string | undefined, options: RotateOptions): Promise<void> {
  if ((name === undefined) !== (options.all === true)) throw new UsageError("give one name, or --all");
  if (options.signingKey === true) return await renewSigningKeys(name ?? null, options);
  const { graceHours } = options;
  const asked = await readDatabase(commandContext(options), async ({ pool }) => {
    const rotations = await createFleetKeys(pool).askRotation(name ?? null, { graceHours, now: new Date() });
    for (const { name: crawler } of rotations) {
      const words = `${crawler} gets a new key; the old one stays valid for ${graceHours} h after that.`;
      await recordCommand(pool, {
        action: "crawler-key-rotated",
        target: crawler,
        words,
        after: { graceHours },
      });
    }
    return rotations;
  });
  if (asked.length === 0) {
    process.stderr.write(
      `nearcrawl: ${name === undefined ? "no crawler has" : `there is no crawler "${name.slice(0, 100)}" that has`} an identity of its own and may connect; nearcrawl fleet invite gives one (crawlers of coordinator add-crawler get new keys there)\n`,
    );
    process.exitCode = exitCodes.notFound;
    return;
  }
  const lines = asked.map(
    ({ name: crawler, online }) =>
      `${crawler} gets a new key ${online ? "now" : "when it comes next"}; the old one stays valid for ${graceHours} hours after that`,
  );
  printAnswer(options, asked, lines.join("\n"));
}

async function renewSigningKeys(name: string | null, options: RotateOptions): Promise<void> {
  const asked = await readDatabase(commandContext(options), async ({ pool }) => {
    const crawlers = await createFleetKeys(pool).askSigningKey(name, new Date());
    for (const { name: target } of crawlers) {
      const words = `${target} makes another signing key.`;
      await recordCommand(pool, { action: "crawler-signing-key-asked", target, words });
    }
    return crawlers;
  });
  if (asked.length === 0) {
    const who = name === null ? "no crawler makes" : `there is no crawler "${name.slice(0, 100)}" that makes`;
    process.stderr.write(
      `nearcrawl: ${who} signing keys and may connect (older ones sign with their identities)\n`,
    );
    process.exitCode = exitCodes.notFound;
    return;
  }
  const lines = asked.map(
    ({ name: crawler, online }) =>
      `${crawler} makes another signing key ${online ? "now" : "when it comes next"}, and uses it once sites can know it`,
  );
  printAnswer(options, asked, lines.join("\n"));
}

type ShutOutOptions = DatabaseOptions & ConfirmOptions;

async function confirmed(name: string, options: ShutOutOptions, words: string): Promise<boolean> {
  return await confirmedByTyping(options, async () => {
    const entry = await readDatabase(commandContext(options), async ({ pool }) =>
      (await fleetList(pool, new Date())).find((one) => one.name === name),
    );
    if (entry === undefined) return null;
    const { subnets, openLeases } = entry;
    const follows = `${name} has ${howMany(subnets, "subnet")} and ${howMany(openLeases, "open lease")}. ${words} nearcrawl fleet reinvite ${name} brings it back.`;
    return { follows, typed: name, asked: "its name" };
  });
}

export function revokeCommand(): Command {
  return withDatabaseOptions(new Command("revoke"))
    .argument("<name>", "the crawler's name")
    .description(
      "revoke a crawler's access at once, whatever key it shows; its subnets go to others after the departure delay. nearcrawl fleet reinvite brings it back",
    )
    .addOption(yesOption())
    .action(async (name: string, options: ShutOutOptions) => {
      if (
        !(await confirmed(
          name,
          options,
          "Its leases return when they expire; its subnets go to others after the departure delay.",
        ))
      )
        return;
      const crawlerId = await readDatabase(commandContext(options), async ({ pool }) => {
        const revoked = await createFleetKeys(pool).revoke(name, new Date());
        const words = `${name}'s access is revoked, whatever key it shows.`;
        if (revoked !== null) await recordCommand(pool, { action: "crawler-revoked", target: name, words });
        return revoked;
      });
      if (crawlerId === null) return nobodyOfThatName(name);
      printAnswer(
        options,
        { crawlerId, name },
        `${name}'s access is revoked, and its session ends if it has one`,
      );
    });
}

export function killCommand(): Command {
  return withDatabaseOptions(new Command("kill"))
    .argument("<name>", "the crawler's name")
    .description(
      "revoke a crawler's access, return its leases and hand over its subnets, all at once. nearcrawl fleet reinvite brings it back",
    )
    .addOption(yesOption())
    .action(async (name: string, options: ShutOutOptions) => {
      if (!(await confirmed(name, options, "Its leases return and its subnets go to others at once.")))
        return;
      const returnedLeases = await readDatabase(commandContext(options), async ({ pool }) => {
        const frontier = createFrontierStore(pool);
        const ports = { keys: createFleetKeys(pool), crawlers: createCrawlerStore(pool), frontier };
        const returned = await killCrawler(name, ports, new Date());
        const words = `${name}'s access is revoked, its leases returned, and its subnets go to others.`;
        const after = { returnedLeases: returned };
        if (returned !== null)
          await recordCommand(pool, { action: "crawler-killed", target: name, words, after });
        return returned;
      });
      if (returnedLeases === null) return nobodyOfThatName(name);
      const text = `${name}'s access is revoked, ${returnedLeases} of its leases returned, and its subnets go to others (nearcrawl fleet list shows how far that is)`;
      printAnswer(options, { name, returnedLeases }, text);
    });
}
