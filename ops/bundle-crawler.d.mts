/** `stopWords`: as readStopWords of #crawler/extract/stop-words gives them. */
interface Bundling {
  readonly root: string;
  readonly outfile: string;
  readonly stopWords: Readonly<Record<string, readonly string[]>>;
}

/** Bundles the migrating crawler into one file. */
export function bundleCrawler(settings: Bundling): Promise<void>;
/** Bundles the dock and the partners' commands into one file. */
export function bundleDock(settings: Bundling): Promise<void>;
/** The local page's thread, as it lies in both. */
export function pageThread(root: string): Promise<string>;
