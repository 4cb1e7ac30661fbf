/**
 * The long run: npm run fuzz -- [--seconds 600] [--seed 1] [--target html]
 * Goes through the targets in turn with a new seed each time. Prints what fails with the seed that shows it again;
 * exit code 1 then.
 */
import { parseArgs } from "node:util";
import { checkSeed, superlinearTokens } from "./fuzz-run.ts";
import { targets } from "./targets.ts";

const { values } = parseArgs({
  options: {
    seconds: { type: "string", default: "600" },
    seed: { type: "string", default: String(Date.now() % 1_000_000_000) },
    target: { type: "string" },
  },
});
const chosen = targets.filter(({ name }) => values.target === undefined || name === values.target);
if (chosen.length === 0) {
  console.error(`--target ${values.target}: one of ${targets.map(({ name }) => name).join(", ")}`);
  process.exit(2);
}
const endMs = Date.now() + Number(values.seconds) * 1000;
const firstSeed = Number(values.seed);
let failures = 0;
let inputs = 0;
let toldMs = Date.now();
console.log(
  `fuzzing ${chosen.map(({ name }) => name).join(", ")} for ${values.seconds} s from seed ${firstSeed}`,
);
for (let seed = firstSeed; Date.now() < endMs; seed++) {
  for (const target of chosen) {
    const failure = await checkSeed(target, seed);
    inputs++;
    if (failure === null) continue;
    failures++;
    console.log(
      `${failure.target}, seed ${failure.seed}: ${failure.why}\n${JSON.stringify(failure.input.slice(0, 2000))}`,
    );
  }
  if (Date.now() - toldMs < 10_000) continue;
  toldMs = Date.now();
  console.log(`${inputs} inputs, ${failures} failures, ${Math.round((endMs - toldMs) / 1000)} s to go`);
}
for (const target of chosen) {
  for (const { token, smallMs, largeMs } of await superlinearTokens(target)) {
    failures++;
    console.log(
      `${target.name}: ${JSON.stringify(token)} took ${smallMs.toFixed(1)} ms, 16 times as much of it ${largeMs.toFixed(0)} ms`,
    );
  }
}
console.log(`${inputs} inputs, ${failures} failures`);
process.exitCode = failures === 0 ? 0 : 1;
