/** `nearcrawl complaints`: reports of trouble with our requests, what we had done, and the answer that can be sent on. */
import { Command } from "commander";
import { type ComplaintStore, createComplaintStore } from "#coordinator/opt-outs/complaint-store";
import { type Complaint, deedsParagraph, partnerLines } from "#coordinator/opt-outs/complaints";
import { readTarget, targetText } from "#coordinator/opt-outs/opt-out";
import { UsageError } from "#core/errors";
import { recordCommand } from "../audit-command-change.ts";
import { commandContext } from "../command-context.ts";
import { exitCodes } from "../exit-codes.ts";
import { formatTable, printAnswer, printable } from "../output.ts";
import { type DatabaseOptions, readDatabase, withDatabaseOptions } from "../read-database.ts";

interface ComplaintsOptions extends DatabaseOptions {
  readonly all?: boolean;
}

const mostListed = 500;

export function complaintsCommand(): Command {
  const command = new Command("complaints")
    .description("complaints about our requests, each with what we sent: add, list, show, close")
    .addHelpText(
      "after",
      "\nExit codes: 0 done, 1 failed, 2 wrong usage, 3 there is no such complaint.\n\nExamples:\n  nearcrawl complaints add --target www.example.org --from abuse@isp.example --text 'too fast'\n  nearcrawl complaints list\n  nearcrawl complaints show 12\n  nearcrawl complaints close 12 --words 'answered on 3 March'",
    );
  command.addCommand(
    withDatabaseOptions(new Command("add"))
      .requiredOption("--target <host-or-range>", "a site, an address or a range")
      .requiredOption("--from <who>", "who complains, and where to reply")
      .requiredOption("--text <words>", "the complaint")
      .description("record a complaint, with our requests to the target in the last 24 hours")
      .action(async (options: ComplaintsOptions & { target: string; from: string; text: string }) => {
        const target = readTarget(options.target, "networks");
        if (typeof target === "string") throw new UsageError(`--target: ${target}`);
        const said = { target, targetText: targetText(target), reporter: options.from, words: options.text };
        const added = await changed(options, "complaint-added", (store) =>
          store.add({ ...said, source: "operator", requester: null }, new Date()),
        );
        if (added !== null) printAnswer(options, added, complaintText(added));
      }),
  );
  command.addCommand(
    withDatabaseOptions(new Command("list"))
      .option("--all", "also those that are closed")
      .description("open complaints, the latest first")
      .action(async (options: ComplaintsOptions) => {
        const list = await withStore(options, (store) =>
          store.list({ open: !options.all, most: mostListed }),
        );
        printAnswer(options, list, complaintsText(list));
      }),
  );
  command.addCommand(
    withDatabaseOptions(new Command("show"))
      .argument("<number>", "as listed")
      .description("one complaint, with a paragraph to forward as is")
      .action(async (number: string, options: ComplaintsOptions) => {
        const found = await withStore(options, (store) => store.find(numberOf(number)));
        if (found === null) notThere(number);
        else printAnswer(options, found, complaintText(found));
      }),
  );
  command.addCommand(
    withDatabaseOptions(new Command("close"))
      .argument("<number>", "as listed")
      .requiredOption("--words <text>", "how it ended, for the record")
      .description("close a complaint")
      .action(async (number: string, options: ComplaintsOptions & { words: string }) => {
        const closed = await changed(options, "complaint-closed", (store) =>
          store.close(numberOf(number), options.words, new Date()),
        );
        if (closed === null) notThere(number);
        else printAnswer(options, closed, `complaint ${closed.complaintId} about ${closed.target} is closed`);
      }),
  );
  return command;
}

async function withStore<T>(
  options: ComplaintsOptions,
  work: (store: ComplaintStore) => Promise<T>,
): Promise<T> {
  return await readDatabase(commandContext(options), async ({ pool }) => {
    return await work(createComplaintStore(pool));
  });
}

async function changed(
  options: ComplaintsOptions,
  action: "complaint-added" | "complaint-closed",
  work: (store: ComplaintStore) => Promise<Complaint | null>,
): Promise<Complaint | null> {
  return await readDatabase(commandContext(options), async ({ pool }) => {
    const complaint = await work(createComplaintStore(pool));
    if (complaint === null) return null;
    const { complaintId, target, closingWords } = complaint;
    const words = `Complaint ${complaintId} about ${target} ${action === "complaint-added" ? "is recorded" : "is closed"}.`;
    await recordCommand(pool, { action, target, words, after: { complaintId, closingWords } });
    return complaint;
  });
}

function numberOf(text: string): number {
  if (!/^\d{1,9}$/.test(text))
    throw new UsageError(`"${text.slice(0, 100)}" is not the number of a complaint`);
  return Number(text);
}

function notThere(number: string): void {
  process.stderr.write(`nearcrawl: there is no open complaint ${number}: nearcrawl complaints list --all\n`);
  process.exitCode = exitCodes.notFound;
}

// Complaints for people: a table, or one of them with the paragraph that can be sent on.

function complaintsText(list: readonly Complaint[]): string {
  if (list.length === 0) return "no open complaints";
  return formatTable(
    [
      { title: "#", align: "right" },
      { title: "at" },
      { title: "target" },
      { title: "from" },
      { title: "requests", align: "right" },
      { title: "crawlers" },
      { title: "" },
    ],
    list.map(({ complaintId, createdAt, target, reporter, deeds, words, closedAt, closingWords }) => [
      String(complaintId),
      createdAt.toISOString().slice(0, 16).replace("T", " "),
      printable(target, 50),
      printable(reporter, 30),
      String(deeds.requests),
      deeds.crawlers.map(({ name }) => name).join(", "),
      printable(closedAt === null ? words : `closed: ${closingWords ?? ""}`, 50),
    ]),
  );
}

export function complaintText(complaint: Complaint): string {
  const { complaintId, target, reporter, words, requester, closedAt, closingWords } = complaint;
  const from = requester === null ? "" : `, by the form from ${requester}`;
  const partners = partnerLines(complaint);
  return [
    printable(`Complaint ${complaintId} about ${target}, from ${reporter}${from}:`),
    ...words.split("\n").map((line) => `> ${printable(line, 2000)}`),
    "",
    "To forward as is:",
    "",
    printable(deedsParagraph(complaint), 4000),
    "",
    partners.length === 0 ? "No crawler of the fleet had sent it a request." : "Hosted by partners:",
    ...partners.map((line) => `  ${printable(line)}`),
    closedAt === null
      ? `Then: nearcrawl complaints close ${complaintId} --words TEXT`
      : printable(`Closed on ${closedAt.toISOString().slice(0, 10)}: ${closingWords ?? ""}`),
  ].join("\n");
}
