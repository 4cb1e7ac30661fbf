/** What a crawler is given by whoever runs it, besides its settings. */

import type { CrawlerLog } from "../core/log.ts";
import type { DockLine, RefusedCrawler } from "./supervisor-line.ts";

export interface CrawlerSurroundings {
  readonly log: CrawlerLog;
  readonly softwareVersion: string;
  /** The dock that runs this process, if one does. */
  readonly dock?: DockLine;
  /** Called when the coordinator refuses this crawler for good; it has stopped then. */
  readonly onRefused?: (refused: RefusedCrawler) => void;
  /** Called when it was drained by its host's word: it is to leave for good now. */
  readonly onDrained?: () => void;
  /**
   * Called in a move to another host. `moved`: the coordinator has decided it, and the crawler has stopped; `failed`:
   * it came to nothing. In both cases the crawler is to be begun anew from its folder.
   */
  readonly onMove?: (how: "moved" | "failed") => void;
}
