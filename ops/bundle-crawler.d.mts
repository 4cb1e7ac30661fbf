/** Bundles the migrating crawler into one file. */
export function bundleCrawler(settings: {
  readonly root: string;
  readonly outfile: string;
  readonly stopWords: Readonly<Record<string, readonly string[]>>;
}): Promise<void>;
