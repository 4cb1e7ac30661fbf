/** The engine of a command beside which no coordinator runs. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Pool } from "pg";
import { EngineOnDemand } from "./engine/engine-on-demand.ts";
import { openFts5 } from "./engine/fts5-engine.ts";

/** An index of its own, which reads all pages at the first question and goes with the command. */
export function commandEngine(pool: Pool) {
  const engine = new EngineOnDemand(async () => {
    const home = mkdtempSync(join(tmpdir(), "nearcrawl-search-"));
    const opened = await openFts5(pool, join(home, "index.sqlite"));
    await opened.catchUp();
    return Object.assign(opened, { home });
  });
  return {
    engine,
    async close(): Promise<void> {
      const opened = await engine.openedSoFar().catch(() => null);
      if (opened === null) return;
      opened.close();
      rmSync(opened.home, { recursive: true, force: true });
    },
  };
}
