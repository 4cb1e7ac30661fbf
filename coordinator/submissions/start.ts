/** The pages' part about handing in URLs, with its store, and what is done for it by the clock. */
import type { Pool } from "pg";
import { createTextResolver } from "#core/name-resolver";
import type { Timekeeper } from "#core/scheduler";
import type { CoordinatorConfig } from "../config.ts";
import type { WebPart } from "../web/actions.ts";
import { submissionRoutes } from "./routes.ts";
import { createSubmissionStore } from "./submission-store.ts";

export function submissionPart({
  pool,
  config,
  texts = createTextResolver({ servers: config.resolvers }),
}: {
  readonly pool: Pool;
  readonly config: Pick<CoordinatorConfig, "scope" | "allowSpecialPurpose" | "resolvers">;
  readonly texts?: (name: string) => Promise<readonly string[]>;
}): WebPart {
  const { allowSpecialPurpose } = config;
  return submissionRoutes({
    store: createSubmissionStore(pool),
    scope: () => config.scope,
    allowSpecialPurpose,
    texts,
  });
}

const forgetMs = 3_600_000;

export function scheduleSubmissions(
  pool: Pool,
  timekeeper: Pick<Timekeeper, "every">,
  now: () => Date,
): void {
  const store = createSubmissionStore(pool);
  timekeeper.every("forget-submissions", forgetMs, async () => await store.forgetOld(now()));
}
