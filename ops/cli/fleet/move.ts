/**
 * `nearcrawl fleet move NAME --to OTHER`: a crawler goes on on another host of its partner. The running coordinator
 * leads the move; this command asks for it, shows how far it is, and waits for the crawler to come from its new host.
 */
import { setTimeout as delay } from "node:timers/promises";
import { Command } from "commander";
import {
  type CrawlerMoveRecord,
  createMoveStore,
  type MoveRefusal,
  type MoveStore,
} from "#coordinator/crawlers/move-store";
import { type MoveStep, stepSeconds } from "#coordinator/crawlers/moves";
import { UsageError } from "#core/errors";
import { recordCommand } from "../audit-command-change.ts";
import { commandContext } from "../command-context.ts";
import { exitCodes } from "../exit-codes.ts";
import { ProgressLine, printable, printJson } from "../output.ts";
import { type DatabaseOptions, readDatabase, withDatabaseOptions } from "../read-database.ts";
import { checkedName, nobodyOfThatName } from "./crawler-names.ts";

interface MoveOptions extends DatabaseOptions {
  readonly to: string;
}

/** Once the move is made, the crawler comes within seconds; a machine under load takes its time. */
const comeSeconds = 60;
const lookMs = 200;

export function moveCommand(): Command {
  return withDatabaseOptions(new Command("move"))
    .argument("<name>", "the crawler that moves", checkedName)
    .requiredOption(
      "--to <other>",
      "the crawler on whose host it is to run, and whose place it takes",
      checkedName,
    )
    .description(
      "move a crawler to another host, with its name and number, subnets, hosts' paces and waiting results; the crawler that ran there hands over its subnets and ceases to exist",
    )
    .addHelpText(
      "after",
      "\nThe other host has joined as a crawler of its own before; both must be connected. Limits, daily counts and\nsettings.toml stay with each host. If anything fails before the move is made, both continue as before.\nExit codes: 0 it runs on the other host, 1 it does not, with the reason, 2 wrong usage, 3 no crawler of that name.",
    )
    .action(async (name: string, options: MoveOptions) => await move(name, options));
}

async function move(name: string, options: MoveOptions): Promise<void> {
  const context = commandContext(options);
  await readDatabase(context, async ({ pool }) => {
    const moves = createMoveStore(pool);
    const asked = await moves.ask({ name, otherName: options.to }, new Date());
    if (typeof asked === "string") {
      refuse(asked, name, options.to);
      return;
    }
    const words = `${name} moves to the host of ${options.to} and takes its place.`;
    const after = { moveId: asked, to: options.to };
    await recordCommand(pool, { action: "crawler-move-asked", target: name, words, after });
    const progress = new ProgressLine();
    const last = await followed(moves, asked, (record) => progress.show(progressText(record)));
    progress.done();
    tell(last, options);
  });
}

function refuse(refusal: MoveRefusal, name: string, other: string): void {
  switch (refusal) {
    case "same-crawler":
      throw new UsageError("--to must name another crawler, which runs on the new host");
    case "no-such-crawler":
      nobodyOfThatName(name);
      break;
    case "no-such-host":
      nobodyOfThatName(other);
      break;
    default:
      process.stderr.write(`nearcrawl: ${name} was not moved: ${refusalWords(name, other)[refusal]}\n`);
      process.exitCode = exitCodes.failed;
  }
}

const refusalWords = (name: string, other: string) => ({
  offline: `${name} is not connected; if its host is gone: nearcrawl fleet reinvite ${name}`,
  "host-offline": `${other} is not connected: start it on the new host first`,
  "no-identity": "both must have joined with an invitation (nearcrawl fleet invite)",
  "shut-out": "the access of one of the two was revoked (nearcrawl fleet list)",
  distrusted: `${other} is not trusted (nearcrawl fleet trust), and its host would be no more so as ${name}`,
  moving: "one of the two takes part in another move",
});

/** Until it runs on the new host, has failed, or nothing comes of it; a move that no coordinator took up is withdrawn. */
async function followed(
  moves: MoveStore,
  moveId: number,
  show: (record: CrawlerMoveRecord) => void,
): Promise<CrawlerMoveRecord> {
  for (;;) {
    const record = await moves.find(moveId);
    if (record === null) throw new Error(`move ${moveId} is gone: one of its crawlers was removed`);
    show(record);
    const idleMs = Date.now() - record.changedAt.getTime();
    if (record.step === "running" || record.step === "failed") return record;
    if (record.step === "moved" && idleMs > comeSeconds * 1000) return record;
    if (record.step === "asked" && idleMs > (stepSeconds.asked ?? 0) * 1000)
      await moves.fail(moveId, "no coordinator took it up: is one running?", new Date());
    await delay(lookMs);
  }
}

function tell(record: CrawlerMoveRecord, options: MoveOptions): void {
  const { name, otherName, step, words, bytes } = record;
  const isDone = step === "running";
  const text = isDone
    ? `${name} runs on the host of ${otherName}; ${otherName} no longer exists, and its subnets go to others`
    : failureText(record);
  if (!isDone) process.exitCode = exitCodes.failed;
  if (options.json)
    printJson({ name, to: otherName, moved: step === "moved" || isDone, step, reason: words, bytes });
  else (isDone ? process.stdout : process.stderr).write(`${isDone ? "" : "nearcrawl: "}${text}\n`);
}

function failureText({ name, otherName, step, words }: CrawlerMoveRecord): string {
  return step === "failed"
    ? `${name} was not moved, and both continue as before: ${printable(words, 500)}`
    : `${name} was moved, but did not connect from the host of ${otherName} within ${comeSeconds} s: check that host; the crawler there takes over when it is started`;
}

const stepWords: Readonly<Record<MoveStep, string>> = {
  asked: "waiting for the coordinator",
  emptying: "the other host finishes and ships its own work",
  packing: "the crawler finishes its requests and ships its results",
  sending: "its data is being sent",
  moved: "waiting for it to connect from the other host",
  running: "it runs",
  failed: "failed",
};

function progressText({ name, otherName, step, bytes, sentBytes }: CrawlerMoveRecord): string {
  const sent = step === "sending" ? ` (${sentBytes} of ${bytes} bytes)` : "";
  return `${name} → ${otherName}: ${stepWords[step]}${sent}`;
}
