/** Applies opt-outs at once when they are recorded, and periodically. */

import type { Pool } from "pg";
import type { CrawlerId } from "#core/ids";
import type { AllowedSpecialPurpose } from "#core/ip/special-purpose";
import type { Log } from "#core/log";
import { createNameResolver, createTextResolver } from "#core/name-resolver";
import type { Timekeeper } from "#core/scheduler";
import { contactOf, reachableContact } from "#protocol/user-agent";
import { noteOwnChanges } from "../../database/own-changes-store.ts";
import { publishedKeySet } from "../../place/crawlers/published-key-set.ts";
import type { CrawlerGateway } from "../gateway/gateway.ts";
import { OptOutHonours } from "./honour.ts";
import { createOptOutMarks } from "./mark-writes.ts";
import { notedOptOuts } from "./noted-opt-outs.ts";
import { proofFileOf, readProofFile } from "./proof-file.ts";
import { createOptOutStore } from "./store.ts";

/** A notice may be lost with its connection, and lapses are only found periodically. */
const passMs = 20_000;

const confirmMs = 60_000;
const duty = "honour-opt-outs";
const proofs = "confirm-opt-outs";

interface OptOutDuties {
  start(): Promise<void>;
  stop(): Promise<void>;
  onWelcome(crawlerId: CrawlerId): void;
}

interface ContactSettings {
  readonly userAgent: string;
  readonly contact: string | null;
  readonly publicUrl: string | null;
  readonly signRequests: boolean;
  readonly resolvers: readonly string[];
  readonly allowSpecialPurpose: AllowedSpecialPurpose;
}

export function optOutDuties(ports: {
  readonly pool: Pool;
  readonly gateway: Pick<CrawlerGateway, "online" | "send">;
  readonly timekeeper: Pick<Timekeeper, "every" | "hurry">;
  readonly config: Pick<ContactSettings, "resolvers" | "allowSpecialPurpose" | "userAgent"> & {
    readonly departureSeconds: number;
  };
  readonly log: Log;
  readonly now: () => Date;
}): OptOutDuties {
  const { pool, gateway, timekeeper, config, log, now } = ports;
  const optOuts = notedOptOuts(createOptOutStore(pool), noteOwnChanges(ports));
  const resolver = createNameResolver({ servers: config.resolvers });
  const honours = new OptOutHonours({
    optOuts,
    marks: createOptOutMarks(pool),
    online: () => gateway.online(),
    send: (crawlerId, message) => gateway.send(crawlerId, message),
    texts: createTextResolver({ servers: config.resolvers }),
    proofFile: async (site) => await readProofFile(proofFileOf(site), { ...config, resolver }),
    departureMs: config.departureSeconds * 1000,
    log,
    now,
  });
  let notices: { stop(): Promise<void> } | null = null;
  return {
    async start() {
      notices = await optOuts.onChange(() => {
        timekeeper.hurry(duty);
        timekeeper.hurry(proofs);
      });
      timekeeper.every(duty, passMs, async () => await honours.pass(), {
        onEach: true,
        whateverTheClock: true,
      });
      timekeeper.every(proofs, confirmMs, async () => {
        await honours.confirm();
      });
      timekeeper.hurry(duty);
    },
    stop: async () => await notices?.stop(),
    onWelcome: (crawlerId) => {
      honours.tell(crawlerId).catch((error: unknown) => {
        log.error({ crawlerId, error }, "a crawler could not be told which sites have opted out recently");
      });
    },
  };
}

/**
 * Why nobody may crawl the public web with these settings: the User-Agent names no reachable contact. Null when it does, or
 * when the crawl is of an own or emulated network.
 */
export function contactFault(config: ContactSettings): string | null {
  if (!crawlsPublicWeb(config)) return null;
  const stated = contactOf(config.userAgent);
  if (stated !== null && reachableContact(stated) !== null) return null;
  return `the User-Agent "${config.userAgent}" would give public web sites no contact`;
}

/** A line per further fault, with its remedy. */
export function contactWarnings(config: ContactSettings): string[] {
  if (!crawlsPublicWeb(config)) return [];
  const warnings: string[] = [];
  if (config.contact === null) {
    warnings.push(
      "no contact is set, so nobody can complain to us about our requests: set contact in the settings to an e-mail address or a URL",
    );
  }
  if (config.signRequests && publishedKeySet(config) === null) {
    warnings.push(
      "signRequests is on, but no request is signed: sites take our public keys by https alone, so publicUrl in the settings must be an https URL",
    );
  }
  return warnings;
}

/** False for a partner's own network and for test name servers. */
function crawlsPublicWeb({ allowSpecialPurpose, resolvers }: ContactSettings): boolean {
  const isEmulated =
    resolvers.length > 0 && resolvers.every((one) => /^(127\.|\[::1\])/.test(one) && !/:53$/.test(one));
  return allowSpecialPurpose !== true && !isEmulated;
}
