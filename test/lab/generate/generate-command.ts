/** `npm run lab -- generate`: a registry of any size in the real formats, to rehearse an import and to measure one. */
import { Command, InvalidArgumentError } from "commander";
import { boundedInteger, share } from "#ops/cli/bounded-number";
import { formatTable, printAnswer } from "#ops/cli/output";
import { workProgress } from "../simulate/work-progress.ts";
import { generateRegistry, type RegistryAccount } from "./generate-registry.ts";
import { maxGeneration, maxObjects } from "./registry-plan.ts";

interface Options {
  readonly objects: number;
  readonly seed: number;
  readonly out: string;
  readonly plain?: boolean;
  readonly generation: number;
  readonly changed: number;
  readonly faults?: boolean;
  readonly json?: boolean;
}

const help = `
Writes RIPE's and APNIC's split databases, AFRINIC's and LACNIC's whole ones, ARIN's bulk XML, the statistics of
all five and IANA's two registries, and prints what an import of them must find, to the last record. The same
options give the same bytes. The ranges are real address space; names, organisations and holders are made up:
rehearse in a schema of its own (--schema), never in the one that crawls.

A million objects take about 80 MB of disk, 515 MB with --plain. The folder has to be empty: an import reads
everything in it, and real downloads bear the same names.

Examples:
  npm run lab -- generate --objects 20k --out rehearsal/now
  npx nearcrawl rir check rehearsal/now
  npm run lab -- generate --objects 20k --generation 1 --changed 0.01 --out rehearsal/next
  npx nearcrawl rir apply rehearsal/now --schema rehearsal && npx nearcrawl rir plan rehearsal/next --schema rehearsal`;

export function generateCommand(): Command {
  return new Command("generate")
    .description("write a made-up registry of any size in the real formats, for rehearsals and measurements")
    .requiredOption("--objects <n>", "network objects, 1 to 100M; 20k and 10M are understood", objectCount)
    .requiredOption("--out <folder>", "where to; made if need be, has to be empty")
    .option("--seed <number>", "another registry of the same size", boundedInteger(0, 0xffffffff), 1)
    .option("--plain", "compress nothing; without it, what the registries compress")
    .option("--generation <k>", "the same registry, k quarters later", boundedInteger(0, maxGeneration), 0)
    .option("--changed <share>", "share of the objects that change from quarter to quarter", share, 0.01)
    .option("--faults", "add one malformed record of every kind to each file")
    .option("--json", "print for programs")
    .addHelpText("after", help)
    .action(generate);
}

async function generate(options: Options): Promise<void> {
  const { objects, seed, out, plain = false, generation, changed, faults = false } = options;
  const progress = workProgress("records");
  const settings = { objects, seed, folder: out, isPlain: plain, generation, changedShare: changed, faults };
  const account = await generateRegistry(settings, ({ file, records, recordsTotal }) =>
    progress.show(file, records, Math.max(records, recordsTotal)),
  );
  progress.done();
  printAnswer(options, account, generatedText(account));
}

function objectCount(text: string): number {
  const parts = /^(\d{1,9})([kM]?)$/.exec(text);
  const count = Number(parts?.[1]) * (parts?.[2] === "M" ? 1e6 : parts?.[2] === "k" ? 1e3 : 1);
  if (parts === null || count < 1 || count > maxObjects) {
    throw new InvalidArgumentError(
      "a whole number from 1 to 100000000 is expected, such as 20000, 20k or 10M",
    );
  }
  return count;
}

function generatedText(account: RegistryAccount): string {
  const count = (value: number) => value.toLocaleString("en");
  const rows = account.files.map(({ file, textBytes, read, kept, malformed }) => [
    file,
    (textBytes / 1e6).toFixed(1),
    ...[read, kept, read - kept - malformed, malformed].map(count),
  ]);
  const right = ["MB", "read", "kept", "ignored", "malformed"].map(
    (title) => ({ title, align: "right" }) as const,
  );
  const { state, changes } = account;
  return [
    "an import must find:",
    formatTable([{ title: "file" }, ...right], rows),
    JSON.stringify(changes === null ? state : { ...state, changes }),
  ].join("\n\n");
}
