/** Where a bench keeps what it found: beside the others in test/bench/results/ only after a whole run, for a shorter one says less. */
import { copyFileSync, existsSync, mkdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Where shortened runs leave theirs; a run by `npm run bench` has a temporary folder of its own, which goes with it. */
export const shortenedVariable = "NEARCRAWL_BENCH_SHORTENED";
export const shortenedFolder = (): string =>
  process.env[shortenedVariable] ?? join(tmpdir(), "nearcrawl-bench-results");

/** `isWhole`: left out, a run that was told nothing but to write. What is there is copied aside, for a bench that changes parts. */
export function resultFile(
  name: string,
  isWhole: boolean = process.argv.slice(2).every((word) => word === "--write"),
): string {
  const whole = join(import.meta.dirname, "../bench/results", name);
  if (isWhole) return whole;
  const aside = join(shortenedFolder(), name);
  mkdirSync(shortenedFolder(), { recursive: true });
  if (existsSync(whole) && !existsSync(aside)) copyFileSync(whole, aside);
  console.error(`a shortened run: ${name} goes to ${aside}, and results/${name} stays as it is`);
  return aside;
}
