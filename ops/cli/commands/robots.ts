/** `nearcrawl robots`: what a robots.txt allows, and by which rule; of a file, or as the crawler would get it. */
import { Command } from "commander";
import { maxRobotsBytes, parseRobots } from "#crawler/fetch/robots-rules";
import { exitCodes } from "../command-context.ts";
import { printAnswer } from "../output.ts";
import { readInput } from "../page/read-input.ts";
import { robotsOfUrl } from "../page/robots-of-url.ts";
import { type RobotsReport, reportOfRules, robotsText } from "../page/robots-report.ts";
import { type SingleFetchOptions, withFetchOptions } from "../page/single-fetch.ts";

interface RobotsOptions extends SingleFetchOptions {
  readonly agent: string;
  readonly path?: readonly string[];
  readonly json?: boolean;
}

export function robotsCommand(): Command {
  const command = new Command("robots")
    .description("what a robots.txt allows (RFC 9309), and by which of its lines")
    .argument("<source>", "the URL of a page or of a robots.txt, a file, or - for standard input")
    .option("--agent <token>", "whom to judge for, as User-agent lines have it", "Nearcrawl")
    .option("--path <path...>", "paths to judge, such as '/a?b=c' (default: the URL's own, or /)")
    .option("--json", "print for programs");
  return withFetchOptions(command)
    .addHelpText(
      "after",
      "\nOf a URL, robots.txt is fetched as the crawler does it: redirects followed, addresses guarded; 4xx allows everything, 5xx, 429 and no answer forbid everything.\nExit codes: 0 judged, whatever the verdict; 1 robots.txt could not be had; 2 the file cannot be read.\n\nExamples:\n  nearcrawl robots https://www.example.org/private/page\n  nearcrawl robots robots.txt --agent FooBot --path /a '/b?c=d'",
    )
    .action((source: string, options: RobotsOptions) => robots(source, options));
}

async function robots(source: string, options: RobotsOptions): Promise<void> {
  const report = /^https?:\/\//i.test(source) ? await robotsOfUrl(source, options) : ofFile(source, options);
  printAnswer(options, report, robotsText(report));
  if (report.hops.length > 0 && report.hops.at(-1)!.status === null) process.exitCode = exitCodes.failed;
}

function ofFile(source: string, { agent, path }: RobotsOptions): RobotsReport {
  const { bytes } = readInput(source, maxRobotsBytes + 1);
  const rules = parseRobots(bytes, agent);
  return reportOfRules(rules, { agent, source, hops: [], url: "http://localhost/robots.txt" }, path ?? ["/"]);
}
