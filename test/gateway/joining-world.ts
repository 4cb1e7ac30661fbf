/** A whole coordinator behind TLS with crawlers that join it: real sockets, a real database. */
import { readFileSync } from "node:fs";
import { readCoordinatorConfig } from "#coordinator/config";
import { startCoordinator } from "#coordinator/main";
import { createIdentityStore } from "#coordinator/place/crawlers/identity-store";
import { createInvitationStore } from "#coordinator/place/crawlers/invitation-store";
import { issueInvitation } from "#coordinator/run/access/invitations";
import { invitingCoordinator } from "#coordinator/run/access/inviting-coordinator-reads";
import { createReleaseKeyStore } from "#coordinator/run/releases/release-store";
import { createIncidentStore } from "#coordinator/tell/fleet/incident-store";
import { randomSecrets } from "#coordinator/web/secrets";
import { silentLog } from "#core/log";
import type { KeyScope } from "#protocol/identity";
import { type Invitation, parseInvitation } from "#protocol/invitation";
import { softwareVersion } from "#protocol/software-version";
import { testDatabase } from "../support/database.ts";
import { testReleaseKey } from "../support/releases.ts";
import { until } from "../support/until.ts";
import { type Came, type CrawlerFolder, comeFrom, folderOf } from "./crawler-folder.ts";
import type { RawCrawler } from "./raw-crawler.ts";

const pemFile = (name: string) => new URL(`../fixtures/tls/loopback.${name}.pem`, import.meta.url).pathname;

interface Invited {
  readonly renews?: boolean;
  readonly scopes?: readonly KeyScope[];
  readonly pagesPerDay?: number;
}

/** `settings` are added to where it listens; with `journalRoot` null no journal is kept. */
export async function newJoiningWorld(
  settings: Record<string, unknown> = {},
  journalRoot: string | null = null,
) {
  const database = await testDatabase();
  const { pool } = database;
  const config = readCoordinatorConfig({
    ...settings,
    listen: { port: 0 },
    tls: { certificateFile: pemFile("cert"), keyFile: pemFile("key") },
  });
  const given = { database, journalRoot, log: silentLog, version: softwareVersion };
  let coordinator = await startCoordinator({ ...given, config });
  const { port } = new URL(coordinator.webUrl);
  const url = `${coordinator.webUrl.replace("http", "ws")}/crawler`;
  const trusting = { ca: readFileSync(pemFile("cert")) };
  const identities = createIdentityStore(pool);
  await createReleaseKeyStore(pool).trustFirst(testReleaseKey.publicKey, new Date());

  async function invite(name: string, given: Invited = {}): Promise<Invitation> {
    const { renews = false, scopes = ["probe", "crawl"], pagesPerDay = null } = given;
    const invitations = createInvitationStore(pool);
    const ports = { invitations, secrets: randomSecrets, coordinator: await invitingCoordinator(pool) };
    const limits = { pagesPerDay, bytesPerDay: null, expiresHours: 1 };
    const request = { name, renews, scopes, ...limits, createdBy: "test" };
    const issued = await issueInvitation(request, ports, new Date());
    if (typeof issued === "string") throw new Error(issued);
    return parseInvitation(issued.token);
  }

  /** A folder whose crawler redeemed an invitation and stored its key, and has not connected since. */
  async function joined(name: string, given: Invited = {}): Promise<CrawlerFolder> {
    const { secret } = await invite(name, given);
    const { secret: key, hash: keyHash } = randomSecrets.make();
    const folder = folderOf(name, key);
    const { publicKey } = folder.identity;
    const shown = { secretHash: randomSecrets.hash(secret), name, publicKey };
    const redeemed = await identities.redeem({ ...shown, keyHash, now: new Date() });
    if ("refused" in redeemed) throw new Error(redeemed.refused.type);
    await identities.keyKept(redeemed.crawlerId, new Date());
    return folder;
  }

  const rows = async (sql: string, values: readonly unknown[] = []) =>
    (await pool.query(sql, [...values])).rows as Record<string, unknown>[];
  const stateOf = async (name: string) =>
    (await rows("select state from crawler where name = $1", [name]))[0]?.state;

  return {
    database,
    pool,
    url,
    trusting,
    invite,
    joined,
    rows,
    stateOf,
    /** Starts another coordinator at the same address after the previous one has ended; `between` runs meanwhile. */
    startOver: async (between: () => Promise<void> = async () => {}): Promise<void> => {
      await coordinator.stop();
      await between();
      const listen = { ...config.listen, port: Number(port) };
      coordinator = await startCoordinator({ ...given, config: { ...config, listen } });
    },
    wentBack: async (): Promise<string> => await coordinator.hasToStartOver,
    come: async (folder: CrawlerFolder, how: Parameters<typeof comeFrom>[2] = {}): Promise<Came> =>
      await comeFrom(folder, url, { ...how, options: trusting }),
    /** Resolves when the coordinator has seen it. */
    leave: async (crawler: RawCrawler, name: string): Promise<void> => {
      crawler.disconnect();
      await until(async () => (await stateOf(name)) === "offline", 20_000);
    },
    /** Stored keys that are not revoked. */
    keptKeys: async (name: string): Promise<number> =>
      (
        await rows(
          `select from crawler_key k join crawler using (crawler_id)
           where name = $1 and kept_at is not null and k.revoked_at is null`,
          [name],
        )
      ).length,
    incidentKinds: async (): Promise<string[]> =>
      (await createIncidentStore(pool).list({ since: new Date(0) })).map(({ kind }) => kind),
    reset: async () => {
      await pool.query("delete from incident; delete from invitation; delete from crawler");
    },
    close: async () => {
      await coordinator.stop();
      await database.close();
    },
  };
}

export type JoiningWorld = Awaited<ReturnType<typeof newJoiningWorld>>;
