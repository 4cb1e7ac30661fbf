/**
 * A machine becomes a crawler of the coordinator that invited it. Each step leaves the folder so that the same
 * command, run again, goes on from there:
 *
 *   nothing → folder → identity → settings → pinned keys → membership with the invitation's secret → membership with a key
 */
import { existsSync, writeFileSync } from "node:fs";
import { UsageError } from "#core/errors";
import type { Invitation } from "#protocol/invitation";
import type { CrawlerLog } from "../core/log.ts";
import { settingsTemplate } from "../settings/settings-template.ts";
import { spoolHolder } from "../spool/spool-folder.ts";
import { runningDock } from "../supervisor/one-dock.ts";
import { pinReleaseKeys } from "../supervisor/release-pins.ts";
import { makeHome } from "./home-folder.ts";
import { homeSettings, settingsFile } from "./home-settings.ts";
import { openIdentity } from "./identity.ts";
import { Member } from "./member.ts";
import { isJoining, type Membership, readMembership, writeMembership } from "./membership.ts";
import { forgetBefore, isBeingSetAside, setAside, takeBack } from "./set-aside.ts";
import { joinInSession, type SessionOutcome } from "./short-session.ts";

/** For the session in which the key is given. */
const sessionMs = 60_000;

/** Where a join has to begin. `joined`: nowhere, this folder has a key of this coordinator already. */
export type JoinStart = "anew" | "goes-on" | "again" | "joined";

/**
 * Throws a UsageError when the folder belongs to another crawler or coordinator, or a crawler runs from it. `again`: a
 * folder that has a key gives it up for a new one, and its identity with it.
 */
export function joinStart(home: string, invitation: Invitation, again: boolean): JoinStart {
  const membership = readMembership(home);
  if (membership === null) return isBeingSetAside(home) ? "again" : "anew";
  const { coordinatorUrl, name } = membership;
  if (coordinatorUrl !== invitation.coordinatorUrl || name !== invitation.name) {
    throw new UsageError(
      `${home} belongs to the crawler ${name} of ${coordinatorUrl} already, and this invitation is for ${invitation.name} of ${invitation.coordinatorUrl}: name another folder with --home`,
    );
  }
  if (!isJoining(membership) && !again) return "joined";
  const running = runningDock(home) ?? spoolHolder(home);
  if (running === null) return isJoining(membership) ? "goes-on" : "again";
  throw new UsageError(`the crawler of ${home} runs, as process ${running}: stop it first`);
}

/** Everything on the disk that the session needs. `neededProxy`: for the settings file, if there is none yet. */
export function prepareHome(
  home: string,
  invitation: Invitation,
  { start, neededProxy }: { readonly start: JoinStart; readonly neededProxy: string | null },
): void {
  makeHome(home);
  if (start === "again") setAside(home);
  openIdentity(home);
  if (!existsSync(settingsFile(home))) writeSettings(home, neededProxy);
  const { coordinatorUrl, name, certificatePin, releaseKeys, secret } = invitation;
  const membership: Membership = {
    coordinatorUrl,
    name,
    certificatePin,
    releaseKeys,
    key: secret,
    ticket: readMembership(home)?.ticket ?? null,
  };
  pinReleaseKeys(home, releaseKeys);
  writeMembership(home, membership);
}

/** Trades the invitation in the folder for a key. Refused, a folder that joins again is who it was before. */
export async function completeJoin(home: string, log: CrawlerLog): Promise<SessionOutcome> {
  const membership = readMembership(home);
  if (membership === null) throw new UsageError(`${home} has no membership to complete`);
  const member = new Member(home, membership);
  const outcome = await joinInSession({ config: homeSettings(home), member, log, timeoutMs: sessionMs });
  if (outcome.type === "joined") forgetBefore(home);
  if (outcome.type === "refused") takeBack(home);
  return outcome;
}

/** For the owner alone: a proxy may come with a password. */
function writeSettings(home: string, neededProxy: string | null): void {
  const text = settingsTemplate(neededProxy === null ? {} : { proxy: neededProxy });
  writeFileSync(settingsFile(home), text, { mode: 0o600, flush: true });
}
