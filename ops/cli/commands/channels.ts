/** `nearcrawl channels`: what is crawled of a host, a directory of it or a set of directories. */
import { Command } from "commander";
import { channelBounds, readChannel } from "#coordinator/channels/channel";
import type { Channel } from "#coordinator/channels/channel-reads";
import type { ChannelStore } from "#coordinator/channels/channel-store";
import { createChannelStore } from "#coordinator/channels/channel-store";
import { channelChange, placeWords, ruleWords, toldChannel } from "#coordinator/channels/page";
import { UsageError } from "#core/errors";
import { recordCommand } from "../audit-command-change.ts";
import { boundedInteger } from "../bounded-number.ts";
import { commandContext } from "../command-context.ts";
import { exitCodes } from "../exit-codes.ts";
import { formatTable, printAnswer, printable } from "../output.ts";
import { type DatabaseOptions, readDatabase, withDatabaseOptions } from "../read-database.ts";

interface AddOptions extends DatabaseOptions {
  readonly seed: readonly string[];
  readonly include: readonly string[];
  readonly exclude: readonly string[];
  readonly maxDepth?: number;
}

export function channelsCommand(): Command {
  const command = new Command("channels")
    .description("what is crawled of a host, one of its directories or a set of them: list, add, remove")
    .addHelpText(
      "after",
      "\nFilters are patterns of path and query: * is anything, a final $ the end; /docs/ is everything that starts with it.\nWhat is in no channel is crawled as the scope says. Exit codes: 0 done, 1 failed, 2 wrong usage or settings that contradict each other, 3 there is no such channel.\n\nExamples:\n  nearcrawl channels list\n  nearcrawl channels add https://www.example.org/docs/ --seed https://www.example.org/docs/ --exclude '/docs/old/' --max-depth 5\n  nearcrawl channels remove 3",
    );
  command.addCommand(
    withDatabaseOptions(new Command("list"))
      .description("every channel, with its pages in the index")
      .action(async (options: DatabaseOptions) => {
        const channels = await withStore(options, async (store) => await store.list());
        printAnswer(options, channels.map(toldChannel), channelsText(channels));
        if (channels.length === 0) process.exitCode = exitCodes.notFound;
      }),
  );
  command.addCommand(
    withDatabaseOptions(new Command("add"))
      .argument("<url-prefix...>", "a host, or directories of one host, each ending with /")
      .description(
        "crawl of these only what the filters say; URLs found before that they skip are not requested again",
      )
      .option("--seed <url>", "where to start, crawled regardless of --include; repeatable", several, [])
      .option("--include <pattern>", "crawl only what matches one of them; repeatable", several, [])
      .option("--exclude <pattern>", "skip what matches, included or not; repeatable", several, [])
      .option(
        "--max-depth <n>",
        "maximum links from a seed (default: as the scope says)",
        boundedInteger(0, channelBounds.depth),
      )
      .action(async (prefixes: readonly string[], options: AddOptions) => await add(prefixes, options)),
  );
  command.addCommand(
    withDatabaseOptions(new Command("remove"))
      .argument("<number>", "as listed", boundedInteger(1, 2_147_483_647))
      .description("crawl it as the scope says; what was skipped is due again")
      .action(async (channelId: number, options: DatabaseOptions) => await remove(channelId, options)),
  );
  return command;
}

const several = (value: string, before: readonly string[]): readonly string[] => [...before, value];

async function add(prefixes: readonly string[], options: AddOptions): Promise<void> {
  const { seed: seeds, include, exclude, maxDepth = null } = options;
  const rules = readChannel({ prefixes, seeds, include, exclude, maxDepth });
  const made = await readDatabase(commandContext(options), async ({ pool }) => {
    const store = createChannelStore(pool);
    const channel = await store.add(rules, new Date());
    if (!("channelId" in channel)) throw new UsageError(channel.join("\n"));
    await recordCommand(pool, channelChange(channel, "channel-added"));
    await store.settle(new Date());
    return (
      (await store.list(channel.host)).find(({ channelId }) => channelId === channel.channelId) ?? channel
    );
  });
  printAnswer(options, toldChannel(made), channelsText([made]));
}

async function remove(channelId: number, options: DatabaseOptions): Promise<void> {
  const removed = await readDatabase(commandContext(options), async ({ pool }) => {
    const channel = await createChannelStore(pool).remove(channelId, new Date());
    if (channel !== null) await recordCommand(pool, channelChange(channel, "channel-removed"));
    return channel;
  });
  if (removed !== null) {
    printAnswer(options, toldChannel(removed), `${placeWords(removed)} is crawled as the scope says`);
    return;
  }
  process.stderr.write(`nearcrawl: there is no channel ${channelId}: nearcrawl channels list\n`);
  process.exitCode = exitCodes.notFound;
}

async function withStore<T>(options: DatabaseOptions, work: (store: ChannelStore) => Promise<T>): Promise<T> {
  return await readDatabase(commandContext(options), async ({ pool }) => {
    return await work(createChannelStore(pool));
  });
}

export function channelsText(channels: readonly Channel[]): string {
  if (channels.length === 0) return "no channels; every host is crawled as the scope says";
  return formatTable(
    [
      { title: "#", align: "right" },
      { title: "what" },
      { title: "what is crawled" },
      { title: "pages", align: "right" },
      { title: "" },
    ],
    channels.map((one) => [
      String(one.channelId),
      printable(placeWords(one), 100),
      printable(ruleWords(one), 160),
      one.expectedPages === null ? "–" : one.expectedPages.toLocaleString("en-GB"),
      one.settled ? "" : "being applied",
    ]),
  );
}
