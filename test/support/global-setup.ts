/**
 * One embedded Postgres for the whole run. The first test that asks for a database starts it, so that runs
 * without one don't pay for it; the teardown stops it. With DATABASE_URL that server is used instead.
 */
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestProject } from "vitest/node";
import { stopEmbeddedPostgres } from "../../db/embedded-postgres.ts";

declare module "vitest" {
  export interface ProvidedContext {
    databaseHome: string;
  }
}

export default function setup(project: TestProject): () => Promise<void> {
  const home = mkdtempSync(join(tmpdir(), "nearcrawl-test-"));
  chmodSync(home, 0o711);
  project.provide("databaseHome", home);
  return async () => {
    await stopEmbeddedPostgres(home);
    rmSync(home, { recursive: true, force: true });
  };
}
