/** Opens what a running crawler is looked at and steered through: the control socket, and the page if it is wanted. */

import type { CrawlerLog } from "../core/log.ts";
import type { CrawlerConfig } from "../settings/config.ts";
import { openControl, type Steered } from "./control-server.ts";
import { PageServer } from "./page-server.ts";

export async function openStatus(of: {
  readonly config: Pick<CrawlerConfig, "home" | "status">;
  readonly crawler: Steered;
  readonly log: CrawlerLog;
}): Promise<{ close(): Promise<void> }> {
  const { config, crawler, log } = of;
  const control = await openControl({ home: config.home, crawler, log });
  const { port } = config.status;
  const page = port === null ? null : new PageServer({ port, report: () => crawler.report(), log });
  return {
    close: async () => {
      await Promise.all([control.close(), page?.close()]);
    },
  };
}
