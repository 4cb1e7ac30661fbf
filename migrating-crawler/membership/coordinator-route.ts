/** Combines the host's settings and the pinned certificate of the membership into the route to the coordinator. */

import { mkdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { z } from "zod";
import { type CoordinatorRefuse, mostCoordinators } from "#protocol/coordinator-messages";
import { isCoordinatorUrl, isLoopbackHost } from "#protocol/invitation";
import type { CrawlerLog } from "../core/log.ts";
import type { Membership } from "../core/membership.ts";
import { readPrivateJson, writePrivateJson } from "../core/private-file.ts";
import type { CoordinatorRoute } from "../net/coordinator-socket.ts";
import { type CrawlerConfig, type ProxyAddress, parseProxy } from "../settings/config.ts";

/** Timeout of each phase: connecting, the proxy's answer, and TLS. */
const timeoutMs = 20_000;

type RouteSettings = Pick<
  CrawlerConfig,
  "coordinatorUrl" | "coordinatorProxy" | "proxy" | "coordinatorCertificateFile"
>;

/** `membership` is null if the key was set by hand. The certificate file may then pin the certificate. */
export function coordinatorRoute(config: RouteSettings, membership: Membership | null): CoordinatorRoute {
  const { coordinatorCertificateFile: file } = config;
  return {
    certificatePin: membership?.certificatePin ?? null,
    ca: file === null ? undefined : readFileSync(file, "utf8"),
    proxy: linkProxy(config),
    timeoutMs,
  };
}

/** `as-sites` uses the sites' proxy, but never to reach this machine itself. */
function linkProxy({ coordinatorProxy, proxy, coordinatorUrl }: RouteSettings): ProxyAddress | null {
  if (coordinatorProxy === "none") return null;
  if (coordinatorProxy !== "as-sites") return parseProxy(coordinatorProxy);
  return proxy === null || isLoopbackHost(new URL(coordinatorUrl).hostname) ? null : parseProxy(proxy);
}

// Stores other coordinators that one coordinator announced (`crawler/coordinators.json` in the home), so that a crawler can
// start while its first coordinator is away. Nothing else depends on the file, so it may be unreadable or unwritable.

const schema = z.object({
  urls: z.array(z.string().max(1000).refine(isCoordinatorUrl)).max(mostCoordinators),
});

/** Supervisors make this folder writable for any release, even for releases older than this file. */
const fileIn = (home: string) => join(home, "crawler", "coordinators.json");

export function readKnownCoordinators(home: string, log: CrawlerLog): readonly string[] {
  try {
    return readPrivateJson(fileIn(home), schema, "It can be removed.")?.urls ?? [];
  } catch (error) {
    log.warn({ file: fileIn(home), error }, "the addresses of other coordinators cannot be read");
    return [];
  }
}

export function keepKnownCoordinators(home: string, urls: readonly string[], log: CrawlerLog): void {
  try {
    mkdirSync(dirname(fileIn(home)), { recursive: true, mode: 0o700 });
    writePrivateJson(fileIn(home), { urls });
  } catch (error) {
    log.warn({ file: fileIn(home), error }, "the addresses of other coordinators cannot be kept");
  }
}

// Tells an administrator what to do if the coordinator refuses the crawler.

const joinAgain = "ask the operator for a new invitation and run join with it and --again";

const advice: { readonly [Code in CoordinatorRefuse["code"]]?: string } = {
  "bad-signature": `identity.json and membership.json of this folder do not belong together, or one of them was replaced:
 put both back from the same backup, or ${joinAgain}.`,
  "copied-folder": `This crawler's folder exists twice, or an old copy of it was put back. Run only one of them: stop the
 other one, and remove the copy. If none is to be found, tell the operator, who sees this refusal too, and ${joinAgain}.`,
  revoked: `The operator has ended this crawler's membership, so it will not be served again. Ask the operator why; with
 a new invitation, stop it and run join with it and --again. To take the crawler off this machine, run the uninstall
 command.`,
  "wrong-key": `The key in membership.json is not the one that the coordinator has for this name, or the invitation has
 run out or was used by another machine: ${joinAgain}.`,
  "wrong-version": `This program is too old or too new for the coordinator: get the one that the coordinator serves at
 /releases/dock.mjs.`,
  moved: `The operator has moved a crawler to another machine of yours (nearcrawl fleet move). Nothing is to be done; if
 you know of no such move, ask the operator.`,
};

export function withRefusalAdvice(reason: string, code: CoordinatorRefuse["code"]): string {
  return `${reason}. ${(advice[code] ?? "").replaceAll("\n", "")}`.trimEnd();
}
