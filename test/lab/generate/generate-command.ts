/** `npm run lab -- generate`: a registry of any size in the real formats, to rehearse an import and to measure one. */
import { Command, InvalidArgumentError } from "commander";
import { boundedInteger } from "#ops/cli/bounded-number";
import { type Column, formatTable, ProgressLine, printAnswer } from "#ops/cli/output";
import { secondsText } from "#ops/cli/rir/progress-text";
import { type GenerateProgress, generateRegistry, type RegistryAccount } from "./generate-registry.ts";
import { maxGeneration, maxObjects } from "./registry-plan.ts";

interface Options {
  readonly objects: number;
  readonly seed: number;
  readonly out: string;
  readonly plain?: boolean;
  readonly generation: number;
  readonly changed: number;
  readonly faults?: boolean;
  readonly force?: boolean;
  readonly json?: boolean;
}

const help = `
Writes RIPE's and APNIC's split databases, AFRINIC's and LACNIC's whole ones, ARIN's bulk XML, the statistics of
all five and IANA's two registries, and prints what an import of them must find, to the last record. The same
options give the same bytes. The ranges are real address space; names, organisations and holders are made up:
rehearse in a schema of its own (--schema), never in the one that crawls.

A million objects take about 80 MB of disk, 515 MB with --plain. The folder has to be empty: an import reads
everything in it, and real downloads bear the same names.

Exit codes: 0 done, 1 failed (a full disk), 2 wrong usage or a folder that is not empty.

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
    .option("--force", "replace what this command wrote into the folder before")
    .option("--json", "print for programs")
    .addHelpText("after", help)
    .action(generate);
}

async function generate(options: Options): Promise<void> {
  const { objects, seed, out, plain = false, generation, changed, faults = false, force = false } = options;
  const line = new ProgressLine();
  const startedAt = performance.now();
  const elapsedSeconds = () => (performance.now() - startedAt) / 1000;
  try {
    const account = await generateRegistry(
      {
        objects,
        seed,
        folder: out,
        isPlain: plain,
        generation,
        changedShare: changed,
        faults,
        mayReplace: force,
      },
      (progress) => line.show(generatingText(progress, elapsedSeconds())),
    );
    line.done();
    printAnswer(options, account, generatedText(account, out, elapsedSeconds()));
  } finally {
    line.done();
  }
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

function share(text: string): number {
  const value = Number(text);
  if (text.trim() === "" || !(value >= 0 && value <= 1)) {
    throw new InvalidArgumentError("a number from 0 to 1 is expected");
  }
  return value;
}

// What `npm run lab -- generate` says on the way and at its end, for people.

const count = (value: number) => value.toLocaleString("en");
const left = (title: string): Column => ({ title });
const right = (title: string): Column => ({ title, align: "right" });

function generatingText({ file, records, recordsTotal }: GenerateProgress, elapsedSeconds: number): string {
  const share = Math.min(1, records / recordsTotal);
  const parts = [`writing ${Math.floor(share * 100)} %`, `${count(records)} records`];
  if (elapsedSeconds > 0.5) {
    parts.push(`${count(Math.round(records / elapsedSeconds))}/s`);
    if (share > 0.02) parts.push(`${secondsText((elapsedSeconds * (1 - share)) / share)} left`);
  }
  return [...parts, file].join(" · ");
}

function generatedText(account: RegistryAccount, folder: string, elapsedSeconds: number): string {
  return [
    filesText(account),
    stateText(account),
    ...(account.changes === null ? [] : [changesText(account)]),
    `${count(account.objects)} network objects in ${folder}, written in ${secondsText(elapsedSeconds)}`,
  ].join("\n\n");
}

/** The columns of `rir check`, so that the two can be held side by side. */
function filesText({ files }: RegistryAccount): string {
  const table = formatTable(
    [
      left("file"),
      left("format"),
      left("registry"),
      ...["MB", "read", "kept", "ignored", "malformed"].map(right),
    ],
    files.map((file) => [
      file.file,
      file.format,
      file.registry,
      (file.textBytes / 1e6).toFixed(1),
      count(file.read),
      count(file.kept),
      count(file.read - file.kept - file.malformed),
      count(file.malformed),
    ]),
  );
  const ignored = files.flatMap(({ file, ignored: reasons }) => {
    const words = Object.entries(reasons).map(([reason, number]) => `${count(number)} ${reason}`);
    return words.length === 0 ? [] : [`  ${file}: ignored ${words.join(", ")}`];
  });
  return ["an import must find:", table, ...ignored].join("\n");
}

function stateText({ state, makeUp }: RegistryAccount): string {
  const { depths, ipv4NotCidr, unary } = makeUp;
  const shares = depths.map((number, at) => `${at + 1}: ${count(number)}`).join(", ");
  return [
    `${count(state.subnets)} subnets (${count(state.ipv4Subnets)} IPv4, ${count(state.ipv6Subnets)} IPv6), at most ${state.deepest} deep; ${count(state.holders)} holders, ${count(state.withoutHolder)} subnets without one; ${count(state.duplicates)} records merged with another of the same range; ${count(state.crossings)} pairs of overlapping ranges`,
    `${count(ipv4NotCidr)} IPv4 ranges are no CIDR block, ${count(unary)} ranges are one address; subnets by depth: ${shares}`,
  ].join("\n");
}

function changesText({ generation, changes }: RegistryAccount): string {
  if (changes === null) return "";
  const { added, removed, changed } = changes;
  return `against generation ${generation - 1}: ${count(added)} added, ${count(removed)} removed, ${count(changed)} changed`;
}
