/** Presents a running crawler to its host, administrator and coordinator. It changes nothing. */
import { contactPageOf } from "#protocol/user-agent";
import type { TaskLoop } from "../crawl/task-loop.ts";
import type { AskedPace, Governor } from "../limits/governor.ts";
import type { HostGates } from "../limits/host-gate.ts";
import type { LimitUsage } from "../limits/limit-usage.ts";
import type { Carrier } from "../link/carrier.ts";
import type { CoordinatorLink } from "../link/coordinator-link.ts";
import { type CrawlerStatus, crawlerStatus } from "../link/crawler-hello.ts";
import type { CrawlerSurroundings } from "../link/supervisor-line.ts";
import type { Member } from "../membership/member.ts";
import type { CrawlerConfig } from "../settings/config.ts";
import { policyWords } from "../settings/release-policy.ts";
import type { Spool } from "../spool/spool.ts";
import type { Warc } from "../warc/open-warc.ts";
import type { Drain } from "./drain.ts";
import { contributionOf } from "./status-history.ts";
import type { StatusRecord } from "./status-record.ts";
import {
  fingerprintOf,
  limitReport,
  type PaceReport,
  releasesReport,
  type StatusReport,
  stateWords,
  statusVersion,
} from "./status-report.ts";

interface CrawlerRooms {
  readonly config: () => CrawlerConfig;
  readonly surroundings: CrawlerSurroundings;
  readonly governor: Governor;
  readonly gates: HostGates;
  readonly spool: Spool;
  readonly link: CoordinatorLink;
  readonly carrier: Carrier;
  readonly loop: TaskLoop;
  readonly warc: Warc | null;
  readonly member: Member | null;
  readonly record: StatusRecord;
  readonly drain: Drain;
}

const mostSlowHosts = 10;
const mostHoldingBack = 20;

export class CrawlerView {
  readonly #rooms: CrawlerRooms;

  constructor(rooms: CrawlerRooms) {
    this.#rooms = rooms;
  }

  status(): CrawlerStatus {
    const { config, link, record, loop, spool, governor } = this.#rooms;
    const known = {
      name: config().name,
      connected: link.isUp,
      crawlerId: record.welcome?.crawlerId ?? null,
      openHosts: loop.openHosts,
      spooledResults: spool.waiting,
      shippedBytes: link.sentBytes,
      holdingBack: this.#holdingBack(),
      diskFault: spool.diskFault,
      diskFreeBytes: governor.disk.freeBytes,
    };
    return crawlerStatus(known, record.tally);
  }

  usage(): LimitUsage[] {
    return this.#rooms.governor.usage(this.#rooms.loop.hostsInPlace);
  }

  report(): StatusReport {
    const { surroundings, governor, gates, spool, member, record, drain, loop } = this.#rooms;
    const config = this.#rooms.config();
    const status = this.status();
    const { story, welcome } = record;
    const { pages, fetchedBytes, bodyBytes, shippedBytes, timesSmaller } = status;
    const release = surroundings.supervisor?.helloParts.release;
    const userAgent = welcome?.userAgent ?? null;
    const report = {
      statusVersion,
      at: new Date().toISOString(),
      state: this.#state(status),
      crawler: {
        name: status.name,
        id: status.crawlerId,
        home: config.home,
        processId: process.pid,
        startedAt: record.startedAt.toISOString(),
        fingerprint: fingerprintOf(member?.identity.publicKey ?? null),
        publicAddress: config.publicAddress ?? welcome?.seenAddress ?? null,
      },
      coordinator: {
        url: config.coordinatorUrl,
        contactPage: userAgent === null ? null : (contactPageOf(userAgent)?.href ?? null),
        userAgent,
        connectedSince: record.connectedSince?.toISOString() ?? null,
        notConnectedSince: record.notConnectedSince?.toISOString() ?? null,
        notConnectedBecause: record.downReason,
      },
      pause: governor.paused,
      drain: drain.asked,
      contribution: contributionOf(story),
      holdingBack: status.holdingBack.slice(0, mostHoldingBack),
      limits: this.usage().map(limitReport),
      notTold: governor.untold(),
      work: {
        openHosts: status.openHosts,
        hostsWaiting: Math.max(0, status.openHosts - loop.hostsInPlace),
        slowHosts: gates.slowHosts(mostSlowHosts),
        pace: paceReport(governor.workPace.asked),
        lastMinute: record.lastMinute,
        today: story.urls,
        probes: record.probes,
      },
      shipping: {
        ...{ pages, fetchedBytes, bodyBytes, shippedBytes, timesSmaller },
        waitingResults: status.spooledResults,
        spoolBytes: spool.bytes,
        spoolMostBytes: governor.disk.spoolMostBytes(),
      },
      errors: { today: story.blames, latest: story.errors },
      versions: {
        crawler: surroundings.softwareVersion,
        release: release?.version ?? null,
        dock: release?.dockVersion ?? null,
        node: process.versions.node,
        protocol: welcome?.protocolVersion ?? null,
      },
      releases: releasesReport(config.home, policyWords(config.releases)),
      lastEnds: story.lastEnds,
    } as const;
    return { ...report, words: stateWords(report) };
  }

  #state({ connected, openHosts }: CrawlerStatus): StatusReport["state"] {
    if (this.#rooms.drain.asked !== null) return "draining";
    if (this.#rooms.governor.paused !== null) return "paused";
    if (!connected) return "not-connected";
    return openHosts > 0 ? "crawling" : "waiting";
  }

  #holdingBack(): string[] {
    const { record, drain, spool, carrier, warc, governor, loop } = this.#rooms;
    return [
      record.downReason,
      drain.asked === null ? "" : `draining, to leave for good: ${drain.asked.reason}`,
      record.paceReason,
      spool.holdingBack(),
      carrier.stuck(performance.now()),
      warc?.stopped() ?? "",
      ...governor.holdingBack(loop.hostsInPlace),
      loop.idleReason,
    ];
  }
}

function paceReport(asked: AskedPace | null): PaceReport | null {
  if (asked === null) return null;
  const { pace, places, since, reason } = asked;
  return { pace, places, since: since.toISOString(), reason };
}
