/** `fetched` lists this crawler's requests and their times from the list in its folder, to answer a complaint. */
import { UsageError } from "#core/errors";
import { plainWords } from "#protocol/fields";
import { type PartnerContext, type PartnerExitCode, partnerExitCodes } from "../core/partner-context.ts";
import { checkCrawlerHome } from "../membership/home-folder.ts";
import { type Contact, fetchedFrom, readFetched } from "../spool/fetched-list.ts";
import { readerGone } from "./closed-output.ts";

interface FetchedOptions {
  readonly since: string;
  readonly until?: string;
  readonly host?: string;
}

export async function fetchedCommand(
  context: PartnerContext,
  options: FetchedOptions,
): Promise<PartnerExitCode> {
  const { home, json, print, complain, now } = context;
  checkCrawlerHome(home);
  const since = instantOf("--since", options.since, now());
  const until = options.until === undefined ? now() : instantOf("--until", options.until, now());
  const host = options.host?.toLowerCase() ?? null;
  const gone = readerGone();
  let found = 0;
  for await (const made of readFetched(home, { since, until, host })) {
    if (gone.aborted) return partnerExitCodes.done;
    print(json ? JSON.stringify(made) : inWords(made));
    found++;
  }
  if (found > 0) return partnerExitCodes.done;
  const from = fetchedFrom(home);
  complain(
    from === null
      ? `There is no list in ${home}: nothing was fetched yet, or settings.toml keeps none ([fetched] days).`
      : `Nothing of that is in the list, which begins at ${from.toISOString()}.`,
  );
  return partnerExitCodes.notFound;
}

/** Example: `2026-11-28T18:40:11.123Z  200 GET https://example.org/ (192.0.2.7)` */
function inWords({ at, status, how, url, address, failure }: Contact): string {
  const end = status ?? failure ?? "-";
  return plainWords(`${at}  ${end} ${how} ${url}${address === null ? "" : ` (${address})`}`);
}

const units = { m: 60_000, h: 3_600_000, d: 86_400_000 } as const;
/** Requires a time zone with a time of day, which would otherwise depend on the machine. */
const instantForm = /^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d{1,3})?)?(Z|[+-]\d\d:\d\d))?$/;

function instantOf(option: string, text: string, now: Date): Date {
  const [, count = "", unit = ""] = /^(\d{1,5})([mhd])$/.exec(text) ?? [];
  const at =
    count !== ""
      ? new Date(now.getTime() - Number(count) * units[unit as keyof typeof units])
      : new Date(instantForm.test(text) ? text : Number.NaN);
  // V8 reads 30 February as a day in March.
  const isDay = count !== "" || new Date(text.slice(0, 10)).getUTCDate() === Number(text.slice(8, 10));
  if (isDay && !Number.isNaN(at.getTime()) && at.getUTCFullYear() >= 1970) return at;
  throw new UsageError(
    `${option} ${text}: must be so long ago (90m, 12h, 7d), a day (2026-11-28, of UTC) or a moment (2026-11-28T14:00Z)`,
  );
}
