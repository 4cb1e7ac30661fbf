/**
 * Opt-outs as the running fleet honours them: whenever one is recorded (by whichever coordinator or command) the
 * connected crawlers are told first, then the frontier is brought in line. Sites confirm by a record in DNS:
 *
 *   _nearcrawl.www.example.org.  TXT  "opt-out=TOKEN"
 *
 * which takes no request to a site that wants none, and which only who holds the domain can make.
 */

import { arrivalLingerMs, Gathered } from "#core/coalesce";
import type { CrawlerId } from "#core/ids";
import { isHostName } from "#core/ip/url-host";
import type { CoordinatorMessage } from "#protocol/coordinator-messages";
import type { OptOutMarks, OptOutReport, OptOutStore } from "./opt-out.ts";

/** Crawlers are told of what opted out in this time, and for as long as one can be away and keep its leases. */
const leastStopMs = 15 * 60_000;
/** Most sites that are told; one message carries so many. */
const mostSites = 10_000;
const sitesPerMessage = 200;
/** Sites that DNS is asked about in one pass. */
const confirmationsPerPass = 50;

const stopWords = "the site has opted out";

export interface OptOutPorts {
  readonly optOuts: OptOutStore;
  readonly marks: OptOutMarks;
  readonly online: () => readonly CrawlerId[];
  /** False when the crawler is gone, or too old to know the message. */
  readonly send: (crawlerId: CrawlerId, message: CoordinatorMessage) => boolean;
  /** TXT records; none when there are none, or when they cannot be had. */
  readonly texts: (name: string) => Promise<readonly string[]>;
  /** So long a crawler that is away may work on what it was leased. */
  readonly departureMs: number;
  readonly log: { info(fields: object, message: string): void; warn(fields: object, message: string): void };
  readonly now: () => Date;
}
/** Crawlers that are told at once. */
const mostTogether = 1000;

export class OptOutHonours {
  readonly #ports: OptOutPorts;
  readonly #stopMs: number;
  /** Sites that the connected crawlers know of, and when they were told. */
  readonly #told = new Map<string, number>();

  /** For all that are welcomed at once. */
  readonly #sites = new Gathered(
    async (crawlerIds: readonly CrawlerId[]) => {
      const sites = await this.#sitesOfLate();
      return crawlerIds.map(() => sites);
    },
    mostTogether,
    arrivalLingerMs,
  );

  constructor(ports: OptOutPorts) {
    this.#ports = ports;
    this.#stopMs = leastStopMs + ports.departureMs;
  }

  /** After a notice, and now and then. */
  async pass(): Promise<void> {
    const { optOuts, marks, log, now } = this.#ports;
    await this.#tellNews();
    const lapsed = await optOuts.lapse(now());
    if (lapsed > 0) log.info({ optOuts: lapsed }, "opt-outs lapsed, for nobody confirmed them");
    const { hosts, leases, pages } = await marks.apply(now());
    if (hosts + pages > 0) {
      log.info({ hosts, leases: leases.length, pages }, "the frontier is in line with the opt-outs");
    }
    // Hosts of a network are known by name once they are marked.
    await this.#tellNews();
  }

  /** A crawler was welcomed: it may not have heard of what opted out while it was away. */
  async tell(crawlerId: CrawlerId): Promise<void> {
    this.#send([crawlerId], await this.#sites.ask(crawlerId));
  }

  /** Looks for the confirmations that sites publish; gives how many it found. */
  async confirm(): Promise<number> {
    const { optOuts, texts, log, now } = this.#ports;
    const open = await optOuts.toConfirm(confirmationsPerPass, now());
    const found = await Promise.all(
      open.map(async ({ optOutId, site, token }) => {
        const records = await texts(confirmationName(site));
        if (!records.some((record) => record.trim() === confirmationText(token))) return false;
        await optOuts.confirm(optOutId, "site", now());
        log.info({ optOutId, site }, "a site has confirmed that it opted out");
        return true;
      }),
    );
    return found.filter(Boolean).length;
  }

  async #tellNews(): Promise<void> {
    const nowMs = this.#ports.now().getTime();
    for (const [site, atMs] of this.#told) if (nowMs - atMs > this.#stopMs) this.#told.delete(site);
    const news = (await this.#sitesOfLate()).filter((site) => !this.#told.has(site));
    this.#send(this.#ports.online(), news);
    for (const site of news) this.#told.set(site, nowMs);
  }

  async #sitesOfLate(): Promise<string[]> {
    const { optOuts, now } = this.#ports;
    const sites = await optOuts.sitesSince(new Date(now().getTime() - this.#stopMs), mostSites);
    // One that no crawler could have a lease of would only end their sessions.
    return sites.filter(isHostName);
  }

  #send(crawlers: readonly CrawlerId[], sites: readonly string[]): void {
    for (let at = 0; at < sites.length; at += sitesPerMessage) {
      const domains = sites.slice(at, at + sitesPerMessage);
      for (const crawlerId of crawlers) {
        this.#ports.send(crawlerId, { type: "coordinator:stop-hosts", domains, reason: stopWords });
      }
    }
  }
}

/** Where a site publishes its confirmation, and what. */
export const confirmationName = (site: string): string => `_nearcrawl.${site}`;
export const confirmationText = (token: string): string => `opt-out=${token}`;

/** In plain words, for who looks the site up. */
export function optOutWords(optOut: OptOutReport): string {
  const { target, kind, state, lapsesAt } = optOut;
  const until =
    state === "unconfirmed" && lapsesAt !== null ? ` (unconfirmed, so until ${lapsesAt.slice(0, 10)})` : "";
  return `The ${kind} ${target} has opted out${until}: no crawler requests anything from it, and no search finds its pages.`;
}
