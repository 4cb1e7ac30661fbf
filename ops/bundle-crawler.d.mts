/** `stopWords` is the result of readStopWords in #core/words/stop-words-resolver. */
interface Bundling {
  readonly root: string;
  readonly outfile: string;
  readonly stopWords: Readonly<Record<string, readonly string[]>>;
}

export function bundleCrawler(settings: Bundling): Promise<void>;
/** Bundles the supervisor and the partners' commands into one file. */
export function bundlePartnerProgram(settings: Bundling): Promise<void>;
/** The local page's thread, as it is in both. */
export function pageThread(root: string): Promise<string>;
