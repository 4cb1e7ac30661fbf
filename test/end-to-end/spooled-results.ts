/** How many results crawlers have numbered, as their spools on the disk say; they must not run. */
import { Spool } from "#crawler/spool/spool";

const maxBytes = 1024 * 1024 * 1024;

export function spooledResults(homes: readonly string[]): number {
  return homes.reduce((sum, home) => sum + newestIn(home), 0);
}

function newestIn(home: string): number {
  const spool = new Spool({ home, maxBytes });
  const { last } = spool;
  spool.close();
  return last ?? 0;
}
