/** Wires submissions: pages, store and periodic work. */

import type { Pool } from "pg";
import type { AllowedSpecialPurpose } from "#core/ip/special-purpose";
import { createTextResolver } from "#core/name-resolver";
import type { Timekeeper } from "#core/scheduler";
import { addOperations, type WebPart } from "../../ask/add-operations.ts";
import type { ScopeSettings } from "../frontier/frontier-settings.ts";
import { notFollowed } from "./submission.ts";
import { createSubmissionStore, submitUrls } from "./submission-store.ts";
import { type SubmissionPorts, submissionOperations } from "./submissions-ask.ts";

export function submissionPart({
  pool,
  config,
  texts = createTextResolver({ servers: config.resolvers }),
}: {
  readonly pool: Pool;
  readonly config: {
    readonly scope: ScopeSettings;
    readonly allowSpecialPurpose: AllowedSpecialPurpose;
    readonly resolvers: readonly string[];
  };
  readonly texts?: (name: string) => Promise<readonly string[]>;
}): WebPart {
  const store = createSubmissionStore(pool);
  return addOperations<SubmissionPorts>(submissionOperations, {
    ...{ store, texts, notFollowed: () => notFollowed(config.scope) },
    submit: async (urls, by) => {
      const { scope, allowSpecialPurpose } = config;
      return await submitUrls(urls, store, { ...by, scope, allowSpecialPurpose });
    },
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
