/** `npm run lab -- generate`: a registry of any size in the real formats, to rehearse and measure imports. */
import { Command, InvalidArgumentError } from "commander";
import { boundedInteger, share } from "#ops/cli/options";
import { generateRegistry, mostObjects } from "./generate-registry.ts";

const help = `
Writes RIPE's and APNIC's split databases, AFRINIC's and LACNIC's whole ones, ARIN's bulk XML, the statistics of
all five and IANA's two registries. The ranges are real address space; names and holders are made up: rehearse in
a schema of its own (--schema), never in the one that crawls. The folder has to be empty.

Examples:
  npm run lab -- generate --objects 20k --out rehearsal/now
  npm run lab -- generate --objects 20k --generation 1 --changed 0.01 --out rehearsal/next
  npx nearcrawl rir apply rehearsal/now --schema rehearsal && npx nearcrawl rir plan rehearsal/next --schema rehearsal`;

export function generateCommand(): Command {
  return new Command("generate")
    .description("write a made-up registry of any size in the real formats, for rehearsals and measurements")
    .requiredOption("--objects <n>", "about so many network objects; 20k and 10M are understood", objectCount)
    .requiredOption("--out <folder>", "where to; made if need be, has to be empty")
    .option("--seed <number>", "another registry of the same size", boundedInteger(0, 0xffffffff), 1)
    .option("--generation <k>", "the same registry, k quarters later", boundedInteger(0, 100), 0)
    .option("--changed <share>", "share of the objects that change from quarter to quarter", share, 0.01)
    .addHelpText("after", help)
    .action(async ({ objects, seed, out, generation, changed }) => {
      const options = { objects, seed, folder: out, generation, changedShare: changed };
      await generateRegistry(options, (name) => process.stdout.write(`${name}\n`));
    });
}

function objectCount(text: string): number {
  const parts = /^(\d{1,8})([kM]?)$/.exec(text);
  const count = Number(parts?.[1]) * (parts?.[2] === "M" ? 1e6 : parts?.[2] === "k" ? 1e3 : 1);
  if (count >= 1 && count <= mostObjects) return count;
  throw new InvalidArgumentError("a whole number from 1 to 10000000 is expected, such as 20000, 20k or 10M");
}
