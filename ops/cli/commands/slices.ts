/** `nearcrawl slices`: the web over several Postgres servers: which slices there are, and hosts that move between them. */
import { Command, InvalidArgumentError } from "commander";
import { knownPolicies } from "#coordinator/settings/change";
import { createPolicyStore } from "#coordinator/settings/settings-store";
import type { PlannedMove } from "#coordinator/slices/catalogue-store";
import { mendSlice } from "#coordinator/slices/mend-slice-writes";
import { removeSlice } from "#coordinator/slices/remove-slice-writes";
import { type SliceReport, sliceReport } from "#coordinator/slices/slice-reads";
import { addSlice, balanceSlices, drainSlice, moveBuckets } from "#coordinator/slices/slice-writes";
import { howMany } from "#core/format";
import type { Database } from "#db/server-database";
import { commandActor, recordCommand } from "../audit-command-change.ts";
import { commandContext } from "../command-context.ts";
import { exitCodes } from "../exit-codes.ts";
import { formatTable, printAnswer, printable } from "../output.ts";
import { type DatabaseOptions, readDatabase, withDatabaseOptions } from "../read-database.ts";

interface AddOptions extends DatabaseOptions {
  readonly server?: string;
  readonly sliceSchema?: string;
  readonly sharedUrl?: string;
  readonly balance: boolean;
}

interface RemoveOptions extends DatabaseOptions {
  readonly forgetChanges?: boolean;
  readonly serverIsGone?: boolean;
}

interface MoveOptions extends DatabaseOptions {
  readonly buckets: { readonly first: number; readonly end: number };
  readonly from: number;
  readonly to: number;
}

export function slicesCommand(): Command {
  const command = new Command("slices")
    .description("the web over several Postgres servers: slices of it, and hosts that move between them")
    .addHelpText(
      "after",
      `
Every crawl begins with one slice, which has all hosts beside the shared tables. Hosts are cut into 4096 buckets by their
names' hashes; coordinators move them in the background, and the crawl goes on. ops/runbook/scaling.md says when it pays.

Exit codes: 0 done, 1 failed, 2 wrong usage, 4 a slice needs attention (list).

Examples:
  nearcrawl slices list
  nearcrawl slices add --server postgresql://nearcrawl@db2.example.org/nearcrawl
  nearcrawl slices move --buckets 0-31 --from 0 --to 1
  nearcrawl slices drain 1
  nearcrawl slices remove 1`,
    );
  command.addCommand(
    withDatabaseOptions(new Command("list"))
      .description("which slices there are: where, how large, what moves, what is wrong")
      .action(async (options: DatabaseOptions) => {
        const report = await readDatabase(commandContext(options), sliceReport);
        printAnswer(options, report, slicesText(report));
        if (report.faults.length > 0) process.exitCode = exitCodes.alerts;
      }),
  );
  command.addCommand(
    withDatabaseOptions(new Command("add"))
      .description("add a slice; hosts move to it until all slices have about as many")
      .option(
        "--server <url>",
        "its Postgres server, without a password; left out, that of the shared tables",
      )
      .option("--slice-schema <name>", "its schema; left out, that of the shared tables with its number")
      .option(
        "--shared-url <url>",
        "how its server reaches that of the shared tables; left out, DATABASE_URL",
      )
      .option("--no-balance", "move no hosts to it yet")
      .action(async (options: AddOptions) => await add(options)),
  );
  command.addCommand(
    withDatabaseOptions(new Command("move"))
      .description("move some buckets from one slice to another")
      .requiredOption("--buckets <first-last>", "from 0-0 to 0-4095", readBuckets)
      .requiredOption("--from <slice>", "the slice that has them", readSlice)
      .requiredOption("--to <slice>", "the slice that gets them", readSlice)
      .action(async (options: MoveOptions) => {
        const { buckets, from, to } = options;
        await plan(
          options,
          `buckets ${buckets.first} to ${buckets.end - 1} are to move from slice ${from} to ${to}`,
          (database, by) => moveBuckets(database, { buckets, from, to }, by),
        );
      }),
  );
  command.addCommand(
    withDatabaseOptions(new Command("balance"))
      .description("move hosts until all slices have about as many")
      .action(async (options: DatabaseOptions) =>
        plan(options, "hosts are to move until all slices have as many", (database, by) =>
          balanceSlices(database, by),
        ),
      ),
  );
  command.addCommand(
    withDatabaseOptions(new Command("drain"))
      .argument("<slice>", "its number", readSlice)
      .description("move all hosts of a slice to the others; nothing new comes to it")
      .action(async (slice: number, options: DatabaseOptions) =>
        plan(options, `slice ${slice} is to be drained`, (database, by) => drainSlice(database, slice, by)),
      ),
  );
  command.addCommand(
    withDatabaseOptions(new Command("remove"))
      .argument("<slice>", "its number", readSlice)
      .description("take a drained slice out of the list, and drop its schema")
      .option("--forget-changes", "though readers of the change feed may not have read all that it has")
      .option("--server-is-gone", "its server will never answer again: nothing is looked at or dropped there")
      .addHelpText(
        "after",
        `
It has to be drained: no buckets, no moves, nothing in an outbox from or to it. Its changes are kept for changes.keepDays
since the latest; remove it then, or with --forget-changes. Readers go on with the cursors that they have. Whoever was
ended in the middle says the same again. With --server-is-gone no host or page is lost, for it has none; changes that
nobody has read yet, links to other hosts that it had not handed on, and the counts of its last leases are.`,
      )
      .action(async (slice: number, options: RemoveOptions) => await remove(slice, options)),
  );
  command.addCommand(
    withDatabaseOptions(new Command("mend"))
      .argument("<slice>", "its number", readSlice)
      .description("bring a slice that came back in an older state in line with the catalogue")
      .action(async (slice: number, options: DatabaseOptions) => {
        const mended = await readDatabase(commandContext(options), async (database) => {
          const answer = await mendSlice(database, slice);
          const words = `slice ${slice} gave up ${answer.givenUp} buckets and took ${answer.taken}`;
          await recordCommand(database.pool, { action: "slice-mended", target: `slice ${slice}`, words });
          return { ...answer, words };
        });
        printAnswer(options, mended, mended.words);
      }),
  );
  return command;
}

async function add(options: AddOptions): Promise<void> {
  const context = commandContext(options);
  const added = await readDatabase(context, async (database) => {
    const answer = await addSlice(
      database,
      {
        serverUrl: options.server ?? null,
        schema: options.sliceSchema ?? null,
        sharedUrl: options.sharedUrl ?? context.databaseUrl ?? database.url,
        by: commandActor(),
        balance: options.balance,
      },
      (words) => process.stderr.write(`${words} …\n`),
    );
    const { number, schema, serverUrl } = answer.slice;
    const words = `slice ${number} was added: schema ${schema} on ${serverUrl ?? "the server of the shared tables"}`;
    await recordCommand(database.pool, { action: "slice-added", target: `slice ${number}`, words });
    return { slice: number, schema, server: serverUrl, ...movesAnswer(answer.moves), words };
  });
  printAnswer(options, added, `${added.words}\n${movesText(added)}`);
}

async function remove(slice: number, options: RemoveOptions): Promise<void> {
  const { forgetChanges = false, serverIsGone = false } = options;
  const removed = await readDatabase(commandContext(options), async (database) => {
    const { settings } = knownPolicies(await createPolicyStore(database.pool).read());
    const answer = await removeSlice(
      database,
      slice,
      { forgetsChanges: forgetChanges, isServerGone: serverIsGone, keepDays: settings.changes.keepDays },
      (words) => process.stderr.write(`${words} …\n`),
    );
    const place = `schema ${answer.schema} on ${answer.serverUrl ?? "the server of the shared tables"}`;
    if (!answer.isNew) return { ...answer, words: `slice ${slice} was removed before: ${place}` };
    const words = `slice ${slice} was removed: ${place}${serverIsGone ? ", which is gone" : ""}`;
    await recordCommand(database.pool, { action: "slice-removed", target: `slice ${slice}`, words });
    return { ...answer, words };
  });
  printAnswer(options, removed, removed.words);
}

async function plan(
  options: DatabaseOptions,
  words: string,
  make: (database: Database, by: string) => Promise<readonly PlannedMove[]>,
): Promise<void> {
  const answer = await readDatabase(commandContext(options), async (database) => {
    const moves = await make(database, commandActor());
    if (moves.length > 0)
      await recordCommand(database.pool, { action: "hosts-moved", target: "slices", words });
    return movesAnswer(moves);
  });
  printAnswer(options, answer, movesText(answer));
}

const movesAnswer = (moves: readonly PlannedMove[]) => ({
  moves: moves.length,
  buckets: moves.reduce((sum, { buckets }) => sum + buckets.end - buckets.first, 0),
});

const movesText = ({ moves, buckets }: ReturnType<typeof movesAnswer>): string =>
  moves === 0
    ? "Nothing has to move."
    : `${howMany(buckets, "bucket")} move in ${howMany(moves, "step")}, as soon as coordinators run: nearcrawl slices list`;

function readSlice(text: string): number {
  if (!/^\d{1,4}$/.test(text) || Number(text) > 4095)
    throw new InvalidArgumentError("a slice's number, from 0 to 4095, is expected.");
  return Number(text);
}

function readBuckets(text: string): { first: number; end: number } {
  const [, first, last] = /^(\d{1,4})-(\d{1,4})$/.exec(text) ?? [];
  if (first === undefined || Number(first) > Number(last) || Number(last) > 4095)
    throw new InvalidArgumentError("a range from 0-0 to 0-4095 is expected.");
  return { first: Number(first), end: Number(last) + 1 };
}

export function slicesText({ slices, moves, furtherMoves, faults }: SliceReport): string {
  const right = { align: "right" as const };
  const table = formatTable(
    [
      ...[{ title: "slice", ...right }, { title: "state" }, { title: "buckets", ...right }],
      ...[
        { title: "share", ...right },
        { title: "hosts", ...right },
        { title: "waiting", ...right },
      ],
      ...[{ title: "coordinator", ...right }, { title: "schema" }, { title: "server" }],
    ],
    slices.map((one) => [
      ...[String(one.slice), one.state, String(one.buckets), `${(100 * one.share).toFixed(1)} %`],
      ...[one.hosts?.toLocaleString("en-GB") ?? "–", one.waiting?.toLocaleString("en-GB") ?? "–"],
      ...[one.coordinator === null ? "" : String(one.coordinator)],
      ...[printable(one.schema ?? "(shared)", 63), printable(one.server ?? "(shared)", 120)],
    ]),
  );
  const moving = formatTable(
    [
      ...[
        { title: "move", ...right },
        { title: "from", ...right },
        { title: "to", ...right },
      ],
      ...[{ title: "buckets" }, { title: "stage" }, { title: "since" }, { title: "fault" }],
    ],
    moves.map((one) => [
      ...[one.move, String(one.from), String(one.to), `${one.firstBucket}-${one.lastBucket}`],
      ...[one.stage, one.since.slice(0, 19).replace("T", " "), printable(one.fault ?? "", 120)],
    ]),
  );
  const further = furtherMoves === 0 ? [] : [`and ${howMany(furtherMoves, "further move")}`];
  return [
    ...faults.map((fault) => printable(fault, 1000)),
    ...(faults.length === 0 ? [] : [""]),
    table,
    ...(moves.length === 0 ? [] : ["", moving, ...further]),
  ].join("\n");
}
