/** A running crawler as others see it: its host, its administrator, the coordinator. Looks into its rooms, changes nothing. */

import type { TaskLoop } from "../crawl/task-loop.ts";
import type { Governor } from "../limits/governor.ts";
import type { HostGates } from "../limits/host-gate.ts";
import type { LimitUsage } from "../limits/limit-usage.ts";
import type { Carrier } from "../link/carrier.ts";
import type { CoordinatorLink } from "../link/coordinator-link.ts";
import { type CrawlerStatus, crawlerStatus } from "../link/crawler-status.ts";
import type { CrawlerSurroundings } from "../link/crawler-surroundings.ts";
import type { Member } from "../membership/member.ts";
import type { CrawlerConfig } from "../settings/config.ts";
import type { Spool } from "../spool/spool.ts";
import type { Warc } from "../warc/open-warc.ts";
import type { Drain } from "./drain.ts";
import { runningReport } from "./running-report.ts";
import type { StatusRecord } from "./status-record.ts";
import type { StatusReport } from "./status-report.ts";

interface CrawlerRooms {
  /** As it is in force now. */
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
      diskFreeBytes: governor.diskFreeBytes,
    };
    return crawlerStatus(known, record.tally);
  }

  usage(): LimitUsage[] {
    return this.#rooms.governor.usage(this.#rooms.loop.hostsInPlace);
  }

  report(): StatusReport {
    const { config, surroundings, governor, gates, spool, member, record, drain, loop } = this.#rooms;
    return runningReport({
      config: config(),
      status: this.status(),
      usage: this.usage(),
      notTold: governor.untold(),
      record,
      paused: governor.paused,
      draining: drain.asked,
      hostsInPlace: loop.hostsInPlace,
      slowHosts: gates.slowHosts(mostSlowHosts),
      pace: governor.workPace.asked,
      spoolBytes: spool.bytes,
      spoolMostBytes: governor.spoolMostBytes(),
      publicKey: member?.identity.publicKey ?? null,
      softwareVersion: surroundings.softwareVersion,
      dock: surroundings.dock,
    });
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
