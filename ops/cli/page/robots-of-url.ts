/** An origin's robots.txt as the crawler gets it, judged for any agent. */

import { UsageError } from "#core/errors";
import { canParseUrl, withoutUser } from "#core/ip/url-host";
import { askRobots, type RobotsAnswer } from "#crawler/fetch/ask-robots";
import { SiteClient } from "#crawler/fetch/site-client";
import { type RobotsReport, reportOfRules, reportWithoutRules } from "./robots-report.ts";
import { type SingleFetchOptions, withFetchTools } from "./single-fetch.ts";

interface Asked extends SingleFetchOptions {
  readonly agent: string;
  readonly path?: readonly string[];
}

/** `source`: a page's URL, which is judged unless paths are given, or that of the robots.txt itself. */
export async function robotsOfUrl(source: string, options: Asked): Promise<RobotsReport> {
  if (!canParseUrl(source)) throw new UsageError(`${source}: must be an http(s) URL`);
  const { origin, pathname, search } = new URL(source);
  const own = pathname === "/robots.txt" ? "/" : pathname + search;
  const hops: { url: string; status: number | null }[] = [];
  const answer = await ask(origin, options, (hop) => hops.push(hop));
  const about = { agent: options.agent, source: withoutUser(source), hops, url: `${origin}/robots.txt` };
  const paths = options.path ?? [own];
  switch (answer.type) {
    case "rules":
      return reportOfRules(answer.rules, about, paths);
    case "none":
      return reportWithoutRules(
        about,
        { allowed: true, why: "there is no robots.txt: everything is allowed" },
        paths,
      );
    case "closed":
      return reportWithoutRules(about, { allowed: false, why: answer.why }, paths);
    case "unreachable":
      return reportWithoutRules(
        about,
        { allowed: false, why: unreachableWords(answer.failure.message) },
        paths,
      );
  }
}

const unreachableWords = (reason: string) =>
  `robots.txt could not be had, which forbids everything: ${reason}`;

async function ask(
  origin: string,
  options: Asked,
  note: (hop: { url: string; status: number | null }) => void,
): Promise<RobotsAnswer> {
  return await withFetchTools(options, async ({ connector, timeouts, userAgent, governor }) => {
    const client = new SiteClient({ origin, connector, timeouts });
    const take = (bytes: number) => governor.takeBytes(bytes);
    try {
      return await askRobots(
        client,
        { connector, timeouts, userAgent, take, agent: options.agent },
        async (asked) => (answer) => note({ url: asked.origin, status: answer?.status ?? null }),
      );
    } finally {
      await client.close();
    }
  });
}
