/**
 * Opens one session without a crawl, to join or to report why nothing runs here. It lasts until it is welcomed and has saved
 * what the coordinator issues, and takes no work.
 */
import type { CoordinatorRefuse } from "#protocol/coordinator-messages";
import type { CrawlerHeartbeat, Goodbye } from "#protocol/messages";
import { softwareVersion } from "#protocol/software-version";
import type { CrawlerLog } from "../core/log.ts";
import { isJoining } from "../core/membership.ts";
import { coordinatorRoute } from "../membership/coordinator-route.ts";
import type { Member } from "../membership/member.ts";
import { speaksIpv6 } from "../net/connector.ts";
import type { CrawlerConfig } from "../settings/config.ts";
import { Spool } from "../spool/spool.ts";
import { CoordinatorLink, type LinkMessage } from "./coordinator-link.ts";
import { crawlerHello } from "./crawler-hello.ts";

export type SessionOutcome =
  /** The coordinator welcomed the crawler and issued its key. */
  | { readonly type: "joined"; readonly crawlerId: number }
  | { readonly type: "refused"; readonly reason: string; readonly code: CoordinatorRefuse["code"] }
  | { readonly type: "failed"; readonly reason: string };

interface ShortSession {
  readonly config: CrawlerConfig;
  readonly member: Member;
  readonly log: CrawlerLog;
  readonly timeoutMs: number;
}

/** Ends with the first failure, without a retry. */
export async function joinInSession(session: ShortSession): Promise<SessionOutcome> {
  return await shortSession(session, { code: "joined", reason: "it has joined and will be back" });
}

/** The coordinator shows `goodbye` as the reason for this crawler's absence. */
export async function shortSession(session: ShortSession, goodbye: Goodbye): Promise<SessionOutcome> {
  const spool = new Spool({ home: session.config.home, maxBytes: session.config.limits.spoolBytes });
  try {
    return await runSession(session, { spoolId: spool.id, goodbye });
  } finally {
    spool.close();
  }
}

async function runSession(
  session: ShortSession,
  { spoolId, goodbye }: { readonly spoolId: string; readonly goodbye: Goodbye },
): Promise<SessionOutcome> {
  const { config, member, log, timeoutMs } = session;
  const ipv6 = await speaksIpv6(config);
  let finish: (outcome: SessionOutcome) => void = () => {};
  const finished = new Promise<SessionOutcome>((resolve) => {
    finish = resolve;
  });
  let crawlerId = 0;
  const finishIfDone = () => {
    if (!isJoining(member.membership)) finish({ type: "joined", crawlerId });
  };
  const link = new CoordinatorLink({
    url: config.coordinatorUrl,
    route: coordinatorRoute(config, member.membership),
    hello: (connection) => member.sign(helloOf(config, { spoolId, ipv6 }), connection),
    heartbeat: () => idleHeartbeat,
    random: Math.random,
    log,
    handlers: {
      onWelcome: (welcome) => {
        crawlerId = welcome.crawlerId;
        member.welcomed(welcome, log);
        finishIfDone();
      },
      onMessage: (message) => {
        keepKey(message, session, link);
        finishIfDone();
      },
      onRoom: () => {},
      onDown: (reason) => finish({ type: "failed", reason }),
      onStopped: (reason, refused) => {
        if (refused !== null) finish({ type: "refused", reason, code: refused.code });
      },
    },
  });
  const late = setTimeout(() => {
    finish({ type: "failed", reason: `the coordinator did not answer within ${timeoutMs / 1000} s` });
  }, timeoutMs);
  link.start();
  const outcome = await finished;
  clearTimeout(late);
  await link.stop(goodbye);
  return outcome;
}

function keepKey(message: LinkMessage, { member, log }: ShortSession, link: CoordinatorLink): void {
  if (message.type !== "coordinator:key") return;
  if (member.keepKey(message.key, log)) link.send({ type: "crawler:key-kept" });
}

function helloOf(config: CrawlerConfig, known: { readonly spoolId: string; readonly ipv6: boolean }) {
  const { probeMethods } = config;
  return crawlerHello(config, { softwareVersion, heldLeases: [], probeMethods, ...known });
}

const idleHeartbeat: CrawlerHeartbeat = {
  type: "crawler:heartbeat",
  openHosts: 0,
  spooledResults: 0,
  pages: 0,
  fetchedBytes: 0,
  shippedBytes: 0,
  holdingBack: ["no crawler runs here yet"],
};
