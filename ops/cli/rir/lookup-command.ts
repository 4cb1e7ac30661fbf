/** `nearcrawl rir lookup`: which ranges hold an address, from the database or straight from files. */
import { Command } from "commander";
import { UsageError } from "#core/errors";
import { LineCutter } from "#rir-import/formats/lines";
import { decodeText } from "#rir-import/formats/text-decoding";
import { openFileLookUps } from "#rir-import/look-up-in-files";
import { type FoundSubnet, type LookUp, lookUp, readAsked } from "#rir-import/lookup";
import type { ImportProgress, OnProgress } from "#rir-import/progress";
import { exitCodes } from "../exit-codes.ts";
import { type Column, formatTable, ProgressLine, printable } from "../output.ts";
import { type DatabaseOptions, onDatabase, withMigrated } from "./cache-options.ts";
import { endWithCoordinator, isJob, JobSteps } from "./job-steps.ts";
import { progressText } from "./progress-text.ts";

type Options = DatabaseOptions & { readonly from?: readonly string[] };
type AskOne = (text: string) => LookUp | Promise<LookUp>;

export function lookUpCommand(): Command {
  return onDatabase(new Command("lookup"), "print for programs: one JSON value a line for each address")
    .description("the chain of ranges that hold an address or a range")
    .argument("<address...>", "addresses, a/prefix or 'a - b'; - reads them from standard input, one a line")
    .option("--from <source...>", "files or folders to look in, without a database")
    .addHelpText("after", help)
    .action((addresses: string[], options: Options) =>
      addresses.includes("-") ? answerInput(addresses, options) : answerAddresses(addresses, options),
    );
}

const help = `
Standard input is answered in JSON lines as it comes; a line that is no address gets one with "error" and is
told on standard error, and the others go on.

Exit codes: 0 all found, 2 wrong usage or a line that is no address, 3 nothing holds one of them.

Examples:
  nearcrawl rir lookup 193.0.6.139
  nearcrawl rir lookup 193.0.6.139 2001:67c:2e8::/48 --from downloads/
  cut -d' ' -f1 access.log | nearcrawl rir lookup - --from delegated-ripencc-extended-latest.gz`;

async function answerAddresses(addresses: readonly string[], options: Options): Promise<void> {
  addresses.forEach(readAsked);
  await withLookUps(options, async (ask) => {
    for (const [at, address] of addresses.entries()) {
      const found = await ask(address);
      if (found.chain.length === 0) process.exitCode = exitCodes.notFound;
      const text = options.json ? JSON.stringify(found) : lookUpText(found);
      const gap = at > 0 && !options.json ? "\n" : "";
      if (!(await writeOut(`${gap}${text}\n`))) return;
    }
  });
}

/** Bad lines told on standard error; the answers in standard output have them all. */
const badLinesTold = 20;

async function answerInput(addresses: readonly string[], options: Options): Promise<void> {
  if (addresses.length > 1)
    throw new UsageError("- reads standard input and stands alone; write a range in quotes: 'a - b'");
  await withLookUps(options, async (ask) => {
    let told = 0;
    const counts = await answerAddressLines({
      input: process.stdin,
      lookUp: ask,
      write: writeOut,
      onBadLine: (line, reason) => {
        if (++told <= badLinesTold) process.stderr.write(`nearcrawl: line ${line}: ${reason}\n`);
      },
    });
    if (counts.bad > badLinesTold)
      process.stderr.write(`nearcrawl: and ${counts.bad - badLinesTold} more lines that are no address\n`);
    process.exitCode = exitCodeOf(counts);
  });
}

function exitCodeOf({ bad, notFound }: AnsweredLines): number {
  if (bad > 0) return exitCodes.usage;
  return notFound > 0 ? exitCodes.notFound : exitCodes.done;
}

async function withLookUps(options: Options, work: (ask: AskOne) => Promise<void>): Promise<void> {
  const { from } = options;
  if (from !== undefined) {
    const files = await withProgress((onProgress) => openFileLookUps(from, onProgress));
    await work(files.lookUp);
    return;
  }
  await withMigrated(options, (database) => work((text) => lookUp(database, text)));
}

// A look-up for people: the ranges from the least to the most specific, each under the one that holds it.

const deepestIndent = 20;

function lookUpText({ asked, chain, crossing }: LookUp): string {
  if (chain.length === 0) return `nothing in the tree holds ${asked}`;
  const others = crossing.length === 0 ? [] : [`crossing it:\n${subnetTable(crossing, false)}`];
  return [`${asked} lies in`, subnetTable(chain, true), ...others].join("\n");
}

function subnetTable(subnets: readonly FoundSubnet[], indented: boolean): string {
  const isFromDatabase = subnets.some(({ subnetId }) => subnetId !== null);
  const delegated: readonly Column[] = isFromDatabase ? [{ title: "delegated to" }] : [];
  return formatTable(
    [...["range", "registry", "country", "name", "holder"].map((title) => ({ title })), ...delegated],
    subnets.map((subnet, depth) => [
      `${indented ? "  ".repeat(Math.min(depth, deepestIndent)) : ""}${subnet.range}`,
      subnet.registry,
      subnet.country ?? "",
      printable(subnet.name, 40),
      holderText(subnet),
      ...(isFromDatabase ? [printable(subnet.delegatedTo ?? "", 40)] : []),
    ]),
  );
}

function holderText({ holder, handle }: FoundSubnet): string {
  if (holder === null) return "";
  return handle === null || handle === holder
    ? printable(holder, 60)
    : `${printable(holder, 50)} (${printable(handle, 30)})`;
}

/**
 * Writes to standard output and waits until it is taken, so that a slow reader slows the writer instead of
 * filling its memory. False when nobody reads any more (`… | head`): the command then ends without a word.
 */
export function writeOut(text: string): Promise<boolean> {
  // The failure arrives at the callback too; without a listener it would end the process with a stack.
  if (process.stdout.listenerCount("error") === 0) process.stdout.on("error", () => {});
  return new Promise((resolve, reject) => {
    process.stdout.write(text, (error) => {
      if (!error) resolve(true);
      else if ((error as NodeJS.ErrnoException).code === "EPIPE") resolve(false);
      else reject(error);
    });
  });
}

// Addresses from a stream, one a line, answered in JSON lines as they come. Memory stays constant whatever the
// stream's length: a line is bounded, and the next piece is read when the answers to this one are taken.
//
// in   193.0.6.139
// nonsense
// out  {"line":1,"asked":"193.0.6.139","chain":[…],"crossing":[]}
// {"line":2,"error":"\"nonsense\" is neither an address nor a range"}

/** Two IPv6 addresses with spaces around a dash are under 100 characters. */
const longestAsked = 200;

/** Answers are handed on when so much has gathered, and at the end of each piece of the stream. */
const gatheredChars = 65_536;

export interface AddressLines {
  readonly input: AsyncIterable<Buffer>;
  lookUp(text: string): LookUp | Promise<LookUp>;
  /** Takes whole lines; false when nobody takes them any more. */
  write(text: string): Promise<boolean>;
  /** A line that is no address or range, and why. */
  onBadLine(line: number, reason: string): void;
}

interface AnsweredLines {
  readonly found: number;
  readonly notFound: number;
  readonly bad: number;
}

export async function answerAddressLines(lines: AddressLines): Promise<AnsweredLines> {
  const counts = { found: 0, notFound: 0, bad: 0 };
  const asked: AskedLine[] = [];
  const cutter = new LineCutter({
    line: (text, line) => asked.push({ line, text: decodeText(text) }),
    longLine: (_beginning, line) => asked.push({ line, text: null }),
  });
  for await (const chunk of lines.input) {
    cutter.push(chunk);
    if (!(await answerAll(asked.splice(0), lines, counts))) return counts;
  }
  cutter.end();
  await answerAll(asked.splice(0), lines, counts);
  return counts;
}

interface AskedLine {
  readonly line: number;
  /** Null for a line that is not worth keeping. */
  readonly text: string | null;
}

type Counts = { -readonly [name in keyof AnsweredLines]: AnsweredLines[name] };

/** False when the answers are not wanted any more. Empty lines are passed over. */
async function answerAll(asked: readonly AskedLine[], lines: AddressLines, counts: Counts): Promise<boolean> {
  let gathered = "";
  for (const one of asked) {
    if (one.text === "") continue;
    gathered += `${JSON.stringify(await answer(one, lines, counts))}\n`;
    if (gathered.length < gatheredChars) continue;
    if (!(await lines.write(gathered))) return false;
    gathered = "";
  }
  return gathered === "" || (await lines.write(gathered));
}

async function answer({ line, text }: AskedLine, lines: AddressLines, counts: Counts): Promise<object> {
  try {
    if (text === null || text.length > longestAsked)
      throw new UsageError(`a line of over ${longestAsked} characters`);
    const lookUp = await lines.lookUp(text);
    if (lookUp.chain.length === 0) counts.notFound += 1;
    else counts.found += 1;
    return { line, ...lookUp };
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    counts.bad += 1;
    lines.onBadLine(line, error.message);
    return { line, error: error.message };
  }
}

// Long work of `nearcrawl rir` with a progress line on standard error, or told to the coordinator that asked for it.

export async function withProgress<T>(work: (onProgress: OnProgress) => Promise<T>): Promise<T> {
  if (isJob()) return await withSteps(work);
  const line = new ProgressLine();
  const phases = new PhaseTexts();
  try {
    return await work((progress) => line.show(phases.text(progress, performance.now()).text));
  } finally {
    line.done();
  }
}

async function withSteps<T>(work: (onProgress: OnProgress) => Promise<T>): Promise<T> {
  endWithCoordinator();
  const steps = new JobSteps();
  const phases = new PhaseTexts();
  return await work((progress) => {
    const nowMs = performance.now();
    const { text, ended } = phases.text(progress, nowMs);
    const share = progress.total > 1 ? Math.min(1, progress.done / progress.total) : null;
    steps.tell({ text, share, done: ended }, nowMs);
  });
}

class PhaseTexts {
  #phase: ImportProgress["phase"] | null = null;
  #sinceMs = 0;
  #last = "";

  /** `ended`: the last text of the phase before, when this is the first of another. */
  text(progress: ImportProgress, nowMs: number): { readonly text: string; readonly ended: string | null } {
    const isNew = progress.phase !== this.#phase;
    const ended = isNew && this.#phase !== null ? this.#last : null;
    if (isNew) {
      this.#phase = progress.phase;
      this.#sinceMs = nowMs;
    }
    this.#last = progressText(progress, (nowMs - this.#sinceMs) / 1000);
    return { text: this.#last, ended };
  }
}
