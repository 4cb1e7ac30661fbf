/** What a look-up and the slow table say of the same random registry, compared. */
import { seededRandom } from "#core/random";
import type { LookUp } from "#rir-import/lookup";
import { type RandomRegistry, randomRegistry } from "./random-ranges.ts";
import { type ReferenceAnswer, referenceAnswer, withoutDuplicates } from "./reference-table.ts";

/** IPv4 for even seeds, IPv6 for odd ones; up to 150 ranges. */
export function registryOfSeed(seed: number): RandomRegistry {
  const random = seededRandom(seed);
  return randomRegistry(random, seed % 2 === 0 ? 4 : 6, 1 + Math.floor(random() * 150));
}

/** The first answers that differ from the table's, with what was asked for. */
export async function differencesFromTable(
  registry: RandomRegistry,
  ask: (text: string) => LookUp | Promise<LookUp>,
): Promise<readonly unknown[]> {
  const table = withoutDuplicates(registry.ranges);
  const differing: unknown[] = [];
  for (const asked of registry.asked) {
    const expected = referenceAnswer(table, asked);
    const answer = named(await ask(asked.text));
    if (JSON.stringify(answer) !== JSON.stringify(expected)) differing.push({ ...asked, answer, expected });
  }
  return differing.slice(0, 3);
}

const named = ({ chain, crossing }: LookUp): ReferenceAnswer => ({
  chain: chain.map(({ name }) => name),
  crossing: crossing.map(({ name }) => name),
});
