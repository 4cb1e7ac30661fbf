/** Page sketches for tests: a page is a simhash (16 hex digits), links and a title. */

import type { Opinion } from "#coordinator/crawl/trust/arbitration";
import type { PageSketch } from "#coordinator/crawl/trust/page-sketch";
import { asCrawlerId } from "#core/ids";

export function page(simhash = "0", links: readonly number[] = [1, 2, 3], title = 7): PageSketch {
  return {
    kind: "page",
    digest: `${simhash}${links}${title}`,
    simhash: simhash.padStart(16, "0"),
    titleHash: title,
    links,
    linkCount: links.length,
  };
}

export function without(kind: "none" | "missing"): PageSketch {
  return { kind, digest: null, simhash: null, titleHash: null, links: [], linkCount: 0 };
}

export const said = (crawler: number, sketch: PageSketch, version = "1.0"): Opinion => ({
  crawlerId: asCrawlerId(crawler),
  sketch,
  version,
});
