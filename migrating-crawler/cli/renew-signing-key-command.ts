/** `renew-signing-key`: the running crawler makes another key to sign its requests with. */

import { type PartnerContext, type PartnerExitCode, partnerExitCodes } from "../core/partner-context.ts";
import { checkCrawlerHome } from "../membership/home-folder.ts";
import { askCrawler } from "../status/ask-crawler.ts";

export async function renewSigningKeyCommand(context: PartnerContext): Promise<PartnerExitCode> {
  const { home, program, json, print, complain } = context;
  checkCrawlerHome(home);
  const answer = await askCrawler(home, { method: "POST", path: "/renew-signing-key" });
  if (answer === null) {
    complain(
      `No crawler runs here, and only a running one can announce a key: start it (${program} run), then ask again.`,
    );
    return partnerExitCodes.notFound;
  }
  const words = answer.trim();
  print(json ? JSON.stringify({ words }, null, 2) : words);
  return partnerExitCodes.done;
}
