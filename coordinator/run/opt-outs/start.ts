/** Applies opt-outs as soon as they are recorded, and periodically. */

import type { FastifyRequest } from "fastify";
import type { Pool } from "pg";
import type { Change } from "#core/audit";
import type { CrawlerId } from "#core/ids";
import type { AllowedSpecialPurpose } from "#core/ip/special-purpose";
import type { Log } from "#core/log";
import { createNameResolver, createTextResolver } from "#core/name-resolver";
import type { Timekeeper } from "#core/scheduler";
import { contactOf, reachableContact } from "#protocol/user-agent";
import { addOperations, type WebPart } from "../../ask/add-operations.ts";
import { type NoteChange, noteOwnChanges } from "../../database/audit-log.ts";
import { isoOrNull } from "../../database/cached-read.ts";
import { createFleetOutside, type FleetOutside } from "../../place/crawlers/public-list-reads.ts";
import { publishedKeySet } from "../../place/crawlers/signing-keys.ts";
import { type Access, viewerOf } from "../../web/access.ts";
import { type PageViewer, sendPage } from "../../web/page-frame.ts";
import type { CrawlerGateway } from "../gateway/gateway.ts";
import { type ComplaintStore, createComplaintStore } from "./complaint-store.ts";
import { contactBody, contactOperations, FormLimits } from "./contact-ask.ts";
import { OptOutHonours, proofFileOf, readProofFile } from "./honour.ts";
import { createOptOutMarks } from "./mark-writes.ts";
import { type OptOut, stateWords } from "./opt-out.ts";
import { contactApi } from "./opt-outs-api.ts";
import type { PublishedSettings } from "./published.ts";
import { addPublishedRoutes } from "./published-routes.ts";
import { createOptOutStore, type OptOutStore } from "./store.ts";

/** Notices may get lost with their connection, and lapses are only found periodically. */
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
 * Says why nobody may crawl the public web with these settings: the User-Agent names no contact that can be reached.
 * Null if it does, or if the crawl is of one's own or an emulated network.
 */
export function contactFault(config: ContactSettings): string | null {
  if (!crawlsPublicWeb(config)) return null;
  const stated = contactOf(config.userAgent);
  if (stated !== null && reachableContact(stated) !== null) return null;
  return `the User-Agent "${config.userAgent}" would give public web sites no contact`;
}

/** Returns a line for each further fault, with its remedy. */
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

export interface ContactPorts {
  readonly optOuts: Pick<OptOutStore, "request">;
  readonly complaints: Pick<ComplaintStore, "add">;
  readonly fleet: FleetOutside;
}

interface Context {
  readonly settings: PublishedSettings & { readonly version: string };
  readonly now: () => Date;
  readonly log: Log;
  readonly viewerOf: (request: FastifyRequest) => Promise<PageViewer | undefined>;
}

/** The pace of crawlers unless their partner or a site asks for less (migrating-crawler/settings/config). */
const usualPolitenessSeconds = 1;

export function contactPart({
  pool,
  config,
  version,
  access,
  now,
  log,
}: {
  readonly pool: Pool;
  readonly config: ContactSettings;
  readonly version: string;
  readonly access: Access;
  readonly now: () => Date;
  readonly log: Log;
}): WebPart {
  const keySetUrl = publishedKeySet(config);
  const { userAgent, contact } = config;
  const signRequests = config.signRequests && keySetUrl !== null;
  return contactPages(
    {
      optOuts: notedOptOuts(createOptOutStore(pool), noteOwnChanges({ pool, log, now })),
      complaints: createComplaintStore(pool),
      fleet: createFleetOutside(pool),
    },
    {
      settings: {
        ...{ version, userAgent, contact, signRequests, keySetUrl },
        politenessSeconds: usualPolitenessSeconds,
      },
      ...{ now, log, viewerOf: async (request) => await viewerOf(access, request) },
    },
  );
}

export function contactPages(ports: ContactPorts, { settings, now, log, viewerOf }: Context): WebPart {
  return (to) => {
    const { app } = to;
    app.pages?.push(contactApi.fleetAddresses);
    app.get("/about-crawler", async (request, reply) => {
      const viewer = await viewerOf(request);
      if (viewer) reply.header("cache-control", "no-store").header("vary", "cookie");
      const about = { title: "About this crawler", path: "/about-crawler", version: settings.version };
      return sendPage(reply, { ...about, body: contactBody(settings), ...(viewer && { viewer }) });
    });
    addPublishedRoutes(app, ports.fleet, { settings, now });
    const limits = new FormLimits(() => performance.now());
    addOperations(contactOperations, { ...ports, limits, log })(to);
  };
}

/** Records requests by form, proofs by DNS or file, and lapses in the audit log. */
export function notedOptOuts(optOuts: OptOutStore, note: NoteChange): OptOutStore {
  return {
    ...optOuts,
    async request(request, now) {
      const optOut = await optOuts.request(request, now);
      const by = { actor: "anybody", remoteAddress: request.requester };
      if (request.source === "form") await note(optedOut(optOut), by);
      return optOut;
    },
    async confirm(optOutId, by, now) {
      const optOut = await optOuts.confirm(optOutId, by, now);
      if (optOut && by === "site") await note(confirmed(optOut));
      return optOut;
    },
    async lapse(now) {
      const count = await optOuts.lapse(now);
      const words = `${count} lapsed: nobody confirmed in time.`;
      if (count > 0) await note({ action: "opt-outs-lapsed", target: null, words, after: { count } });
      return count;
    },
  };
}

function optedOut({ optOutId, target, state, deletesAt }: OptOut): Change {
  const words = `Somebody opted ${target} out with the form (${stateWords({ state, deletesAt })}).`;
  return { action: "opted-out", target, words, after: { optOutId, state, deletesAt: isoOrNull(deletesAt) } };
}

function confirmed({ optOutId, target, state }: OptOut): Change {
  const words = `${target} proved its opt-out, in its DNS or by a file: it is permanent.`;
  return { action: "opt-out-confirmed", target, words, after: { optOutId, state } };
}
