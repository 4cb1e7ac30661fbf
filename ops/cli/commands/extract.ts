/** `nearcrawl extract`: what the crawler extracts from a page, given as a file or URL. */

import { Command } from "commander";
import { UsageError } from "#core/errors";
import { canParseUrl, withoutUser } from "#core/ip/url-host";
import { printable } from "#core/terminal-text";
import { withoutDeniedText } from "#crawler/crawl/crawl-slice";
import { extractPage } from "#crawler/extract/extract-page";
import type { LinksOfTwo } from "#crawler/extract/second-opinion";
import { maxBodyBytes } from "#crawler/fetch/ask-robots";
import type { StatedPreference } from "#protocol/preferences";
import type { PageExtract } from "#protocol/result";
import { printAnswer } from "../output.ts";
import {
  NoPageError,
  pageText,
  readInput,
  type SingleFetchOptions,
  singleFetch,
  statedFacts,
  withFetchOptions,
} from "../page/single-fetch.ts";

interface ExtractOptions extends SingleFetchOptions {
  readonly url: string;
  readonly contentType: string;
  readonly secondOpinion?: boolean;
  readonly json?: boolean;
}

interface ExtractAnswer {
  readonly source: string;
  /** True when the body exceeded the size or nesting that is kept. */
  readonly cut: boolean;
  readonly page: PageExtract;
  /** Statements on how the page may be used. For a file, only those in the page itself. */
  readonly stated: readonly StatedPreference[];
  /** Links that only one of two parsers finds. Absent when not requested or when the page is too long. */
  readonly secondOpinion?: LinksOfTwo | undefined;
}

export function extractCommand(): Command {
  const command = new Command("extract")
    .description("what the crawler reads from a page: title, text, dates, links")
    .argument("<source>", "a URL, a file, or - for standard input")
    .option("--url <url>", "where a file comes from: its links are relative to it", "http://localhost/")
    .option("--content-type <type>", "what its server would say of a file", "text/html")
    .option("--second-opinion", "of a file: the links that node-html-parser finds otherwise")
    .option("--json", "print for programs: all that would be shipped");
  return withFetchOptions(command)
    .addHelpText(
      "after",
      `
Exit codes: 1 when the URL gives no page (nearcrawl fetch says why), 2 when the file cannot be read.

Examples:
  nearcrawl extract page.html --url https://www.example.org/news/
  curl -s https://www.example.org/ | nearcrawl extract - --json`,
    )
    .action((source: string, options: ExtractOptions) => extract(source, options));
}

async function extract(source: string, options: ExtractOptions): Promise<void> {
  const answer = isUrl(source) ? await ofUrl(source, options) : await ofFile(source, options);
  const text = `${answer.cut ? "the page was cut: what follows was read from its beginning\n" : ""}${pageText(answer.page)}`;
  const stated = statedFacts(answer.stated).map(([name, fact]) => `\n${name.padEnd(12)}${fact}`);
  printAnswer(options, answer, text + stated.join("") + opinionText(options, answer));
}

function opinionText(options: ExtractOptions, { secondOpinion }: ExtractAnswer): string {
  if (options.secondOpinion !== true) return "";
  if (secondOpinion === undefined)
    return "\nthe page is too long, or of a kind that the other parser does not read";
  const { onlyOurs, onlyTheirs } = secondOpinion;
  const lines = [
    ...onlyOurs.map((url) => `\nonly ours    ${printable(url)}`),
    ...onlyTheirs.map((url) => `\nonly theirs  ${printable(url)}`),
  ];
  return lines.length === 0 ? "\nboth parsers find the same links" : lines.join("");
}

export const isUrl = (source: string) => /^https?:\/\//i.test(source);

async function ofFile(
  source: string,
  { url, contentType, secondOpinion = false }: ExtractOptions,
): Promise<ExtractAnswer> {
  if (!isUrl(url) || !canParseUrl(url)) throw new UsageError(`--url ${url}: must be an http(s) URL`);
  const { bytes, cut } = readInput(source, maxBodyBytes);
  const extracted = await extractPage({
    url: new URL(withoutUser(url)).href,
    bytes,
    contentType,
    contentLanguage: null,
    robotsTag: undefined,
    quiet: async () => {},
    wantsSecondOpinion: secondOpinion,
  });
  const { page, stated, secondOpinion: links } = extracted;
  return {
    source,
    cut: cut || extracted.cut,
    page: withoutDeniedText(page, stated),
    stated,
    secondOpinion: links,
  };
}

async function ofUrl(source: string, options: ExtractOptions): Promise<ExtractAnswer> {
  if (options.secondOpinion === true)
    throw new UsageError("--second-opinion: wants a page from a file or from standard input");
  const { hops, ending } = await singleFetch(source, options);
  const result = hops.at(-1)?.result;
  if (result === undefined) throw new UsageError(`${source}: ${ending ?? "nothing was fetched"}`);
  if (result.page === null) throw new NoPageError(result);
  return {
    source: withoutUser(source),
    cut: result.outcome.type === "fetched" && result.outcome.truncated,
    page: result.page,
    stated: result.preferences ?? [],
  };
}
